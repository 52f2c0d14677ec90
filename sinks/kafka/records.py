"""Outcomes as Kafka records: key, value, headers, and what is left of one that is too large."""

import msgspec

from dikast.engine.model import Outcome, Undecided, Verdict
from dikast.engine.text import scrub
from dikast.sinks.kafka.address import ValueFormat

Headers = list[tuple[str, str | bytes | None]]
RUN_HEADER, SPEC_HEADER, SEQ_HEADER = "dikast-run", "dikast-spec", "dikast-seq"
REASON_HEADER, SIZE_HEADER = "dikast-reason", "dikast-bytes"
_REASON_CHARS = 500


def buried(name: str, count: int, topic: str) -> str:
    """What is said at the end of a run with dead letters."""
    many = "1 outcome was" if count == 1 else f"{count:,} outcomes were"
    return f"{name}: {many} too large and went to {topic}, without the trail"


class OutgoingRecord:
    """One record on its way; `seq` tells it from every other of the same sink."""

    __slots__ = ("headers", "key", "seq", "topic", "value")

    def __init__(self, topic: str, key: bytes, value: bytes, headers: Headers, seq: int) -> None:
        self.topic = topic
        self.key = key
        self.value = value
        self.headers = headers
        self.seq = seq


class RecordMaker:
    """Makes records of one run.

    Args:
        topic: where they go.
        form: how values are written.
        run: names the run in every record's headers.
    """

    def __init__(self, topic: str, form: ValueFormat, run: str) -> None:
        self._topic = topic
        self._run = run
        self._seq = 0
        json = form == "json"
        self._encode = msgspec.json.Encoder().encode if json else msgspec.msgpack.Encoder().encode

    def make(self, outcome: Outcome) -> OutgoingRecord:
        """The record of an outcome."""
        return self._record(self._topic, outcome.id, self._bytes(outcome), outcome.spec, [])

    def dead_letter(self, topic: str, outcome: Outcome, size: int, reason: str) -> OutgoingRecord:
        """A small record that tells of an outcome too large to be sent: all but its trail."""
        small: dict[str, object] = {"id": outcome.id, "spec": outcome.spec, "bytes": size}
        if isinstance(outcome, Verdict):
            small |= {"kind": "verdict", "winner": outcome.winner, "basis": outcome.basis}
        elif isinstance(outcome, Undecided):
            small |= {"kind": "undecided", "why": outcome.why}
        else:
            small |= {"kind": "failed", "reason": getattr(outcome, "reason", "")}
        headers: Headers = [(REASON_HEADER, reason[:_REASON_CHARS]), (SIZE_HEADER, str(size))]
        return self._record(topic, outcome.id, self._bytes(small), outcome.spec, headers)

    def _bytes(self, value: object) -> bytes:
        try:
            return self._encode(value)
        except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError):
            return self._encode(scrub(msgspec.to_builtins(value)))

    def _record(
        self, topic: str, id: str, value: bytes, spec: str, more: Headers
    ) -> OutgoingRecord:
        self._seq += 1
        headers: Headers = [
            (RUN_HEADER, self._run),
            (SPEC_HEADER, spec),
            (SEQ_HEADER, str(self._seq)),
            *more,
        ]
        key = id.encode("utf-8", "surrogatepass")
        return OutgoingRecord(topic, key, value, headers, self._seq)
