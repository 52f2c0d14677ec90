"""What is logged, and what never is."""

import io
import json

from dikast.engine.events import CallRetried, PairDone, RunStopping
from dikast.engine.model import Usage, Verdict, Vote
from dikast.logging import LogObserver, build_logger

_OUTCOME = Verdict(
    id="p1",
    winner="B",
    basis="agree",
    calls=2,
    stored_calls=1,
    usage=Usage(input=10, output=3),
    votes=(Vote(judge="j", order="ab", pick="B", text="the answer text"),),
    simulated=True,
)
_RETRY = CallRetried(
    key="k", pacer="openai", pair_id="p1", kind="rate", attempt=1, wait_s=2.5, spent=False
)


def _lines(level: str, *events: object) -> list[dict[str, object]]:
    stream = io.StringIO()
    observer = LogObserver(build_logger(level, "json", stream), level)
    for event in events:
        observer(event)  # type: ignore[arg-type]
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_one_canonical_line_per_pair_at_debug_level_without_any_text() -> None:
    (line,) = _lines("debug", PairDone(outcome=_OUTCOME, duration_s=0.25))

    assert line["event"] == "pair_done"
    assert (line["pair"], line["result"], line["basis"]) == ("p1", "B", "agree")
    assert (line["calls"], line["stored_calls"], line["duration_s"]) == (2, 1, 0.25)
    assert line["simulated"] is True
    assert "the answer text" not in json.dumps(line)


def test_pairs_are_silent_at_info_and_retries_are_told() -> None:
    (line,) = _lines("info", PairDone(outcome=_OUTCOME, duration_s=0.25), _RETRY)

    assert (line["event"], line["provider"], line["wait_s"]) == ("call_retried", "openai", 2.5)


def test_only_stops_are_told_by_default() -> None:
    stop = RunStopping(reason="quota", message="gone")

    (line,) = _lines("warning", _RETRY, stop)

    assert (line["event"], line["reason"], line["level"]) == ("run_stopping", "quota", "warning")


def test_the_console_format_is_for_people() -> None:
    stream = io.StringIO()
    LogObserver(build_logger("info", "console", stream), "info")(_RETRY)

    assert "call_retried" in stream.getvalue()
    assert not stream.getvalue().startswith("{")
