"""Recorded judge outputs, served as if the judge were asked now.

The call names a pair, an order and a sample; the record with the same pair, judge, template, order
and repetition answers it, with its token probabilities where they were recorded. Reads JSONL files
(plain or gzip) once, when the first call comes. Knows nothing of prompts: the messages of a call
are not looked at.
"""

import glob
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Call, Completion, Record, TokenLogprob, Usage
from dikast.engine.ports import Reply


class ReplaySettings(
    Record, frozen=True, tag_field="kind", tag="replay", forbid_unknown_fields=True
):
    """Configuration of a provider of recorded outputs.

    A judge that uses it must have `by_pair = true`, for its answers depend on the pair and the
    order; its `model` is the recorded judge's name.
    """

    paths: tuple[str, ...]
    """Files or glob patterns: JSONL, or gzip of it when the name ends in .gz."""
    template: str | None = None
    """Name of the template whose records are served. A judge may name its own in
    `params.extra.template`."""
    first_repeat: int = 0
    """Number of the recorded repetition that answers sample 0; a record without one counts as 0."""


class _Row(msgspec.Struct):
    """A recorded output; other fields are passed over.

    `raw` is the judge's text; what is no text (an upstream's list of several) is served as none.
    `logprobs` lists the tokens that spell it, as in an outcome of our own.
    """

    pair_id: str
    judge: str
    template: str
    order: str
    raw: Any = None
    repeat: int | None = None
    finish: str | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None


class _Recorded(NamedTuple):
    """What is served of a record."""

    text: str | None
    finish: str | None
    logprobs: tuple[TokenLogprob, ...] | None


_Key = tuple[str, str, str, str, int]


class ReplayProvider:
    """A `Provider` over recorded outputs. Holds them in memory from the first call on.

    Args:
        files: existing files, see `find_files`.
        settings: which of their records to serve.
    """

    simulated = False

    def __init__(self, files: list[Path], settings: ReplaySettings) -> None:
        self._files = files
        self._template = settings.template
        self._first_repeat = settings.first_repeat
        self._records: dict[_Key, _Recorded] | None = None
        self._broken: str | None = None

    def __repr__(self) -> str:
        count = "not read" if self._records is None else f"{len(self._records)} records"
        return f"ReplayProvider({len(self._files)} files, {count})"

    async def complete(self, call: Call) -> Reply:
        """The recorded output for the call's pair, order and sample. Source: `Provider.complete`.

        Raises:
            ProviderError: "missing", with a message that names what was looked for; "bad_request"
                when the judge does not say which record is wanted.
        """
        return Reply(completion=self._look_up(call))

    async def check(self) -> None:
        """Read the files.

        Raises:
            ProviderError: "missing", when one of them cannot be read.
        """
        self._load()

    async def aclose(self) -> None:
        """Let go of the records; may be called twice."""
        self._records = None

    def _look_up(self, call: Call) -> Completion:
        judge = call.judge
        if not judge.by_pair:
            text = f"judge {judge.name!r} replays recorded outputs and needs by_pair = true"
            raise ProviderError("bad_request", text)
        template = judge.params.extra.get("template", self._template)
        if not isinstance(template, str):
            text = (
                f"judge {judge.name!r} replays recorded outputs and needs a template: set it in "
                "the provider's settings or in the judge's params.extra"
            )
            raise ProviderError("bad_request", text)
        records = self._load()
        repeat = call.sample + self._first_repeat
        found = records.get((call.pair_id, judge.model, template, call.order, repeat))
        if found is None or found.text is None:
            what = "there is no recorded output" if found is None else "the record has no text"
            text = (
                f"{what} for pair {call.pair_id!r}, judge {judge.model!r}, template {template!r}, "
                f"order {call.order}, repeat {repeat}"
            )
            raise ProviderError("missing", text)
        return Completion(
            text=found.text,
            finish_reason=found.finish or "stop",
            usage=Usage(),
            logprobs=found.logprobs if judge.params.logprobs else None,
            served_by=f"replay:{judge.model}",
        )

    def _load(self) -> dict[_Key, _Recorded]:
        """Read the files at the first call, in one go: about 0.1 s for 20,000 records."""
        if self._records is not None:
            return self._records
        if self._broken is None:
            try:
                self._records = read_records(self._files)
                return self._records
            except OSError as error:
                self._broken = f"recorded outputs cannot be read: {error}"
            except (ValueError, EOFError) as error:
                self._broken = f"recorded outputs cannot be read: {error}"
        raise ProviderError("missing", self._broken)


def find_files(name: str, settings: ReplaySettings) -> list[Path]:
    """The files that the settings' paths and patterns stand for, each once, in order.

    Raises:
        ConfigError: a path matches no file.
    """
    found: dict[Path, None] = {}
    for pattern in settings.paths:
        matches = sorted(glob.glob(pattern, recursive=True))
        if not matches:
            raise ConfigError(f"providers.{name}.paths: no file matches {pattern!r}")
        found.update((Path(match), None) for match in matches)
    if not found:
        raise ConfigError(f"providers.{name}.paths: name at least one file of recorded outputs")
    return list(found)


def read_records(files: list[Path]) -> dict[_Key, _Recorded]:
    """All records of the files by pair, judge, template, order and repetition.

    Raises:
        OSError: a file cannot be read.
        ValueError: a line is not a record, or two records disagree; the message names the place.
    """
    records: dict[_Key, _Recorded] = {}
    for file in files:
        for line, row in _rows(file):
            key = (row.pair_id, row.judge, row.template, row.order, row.repeat or 0)
            text = row.raw if isinstance(row.raw, str) else None
            value = _Recorded(text, row.finish, row.logprobs)
            if records.setdefault(key, value) != value:
                raise ValueError(f"{file}, line {line}: another output is recorded for {key}")
    return records


def _rows(file: Path) -> Iterator[tuple[int, _Row]]:
    decoder = msgspec.json.Decoder(_Row)
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.isspace():
                continue
            try:
                yield number, decoder.decode(line)
            except (msgspec.DecodeError, RecursionError) as error:
                raise ValueError(f"{file}, line {number}: {error}") from error
