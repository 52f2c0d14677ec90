"""`dikast sesse evaluate`: every table of a run of SESSE from its log of votes, without a call.

An embedder behind an endpoint is the one thing that is asked, and only for what it has not said.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dikast import status, wiring
from dikast.commands.reporting import drawn
from dikast.commands.sesse_common import rows_of
from dikast.commands.sesse_page import page
from dikast.commands.sesse_runs import outcomes_in, verdicts_in
from dikast.commands.sesse_tables import tables
from dikast.config import Settings, load_settings
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.files import write_whole
from dikast.engine.model import Outcome, Part, Winner
from dikast.engine.store import open_store
from dikast.extras import needs
from dikast.strategies.sesse.library import Library, load_library
from dikast.strategies.sesse.pool import pool, prefix
from dikast.strategies.sesse.replay import Logged, Replay, first_votes, logged

if TYPE_CHECKING:
    from dikast.analysis.sesse_report import Report, Run, Source
    from dikast.analysis.sesse_rows import EvalRow
    from dikast.analysis.sesse_votes import Thresholds

_CHUNK_CHARS = 1200
"""Characters of an answer that are embedded at a time: about 250 word pieces, less than any
sentence encoder cuts at."""


class Log:
    """What one file of outcomes holds."""

    def __init__(self, path: str, holistic: dict[str, Winner]) -> None:
        self.path = path
        self.first: Outcome | None = None
        self.simulated = False
        self.calls = 0
        self.count = 0
        self.parts: list[tuple[Winner, Part]] = []
        self.rows, self.left_out = logged(self._read(path), holistic, path)
        if not self.rows:
            why = ", ".join(f"{count} {reason}" for reason, count in self.left_out.items())
            raise InputError(f"no labelled row to report on ({why or 'it is empty'})", file=path)

    def _read(self, path: str) -> Any:
        for outcome in outcomes_in(path):
            if self.first is None or (not self.first.votes and outcome.votes):
                self.first = outcome
            self.simulated = self.simulated or outcome.simulated
            self.calls += outcome.calls
            self.count += 1
            label = outcome.label
            if label is not None and label != "tie":
                self.parts.extend((label, part) for part in outcome.parts)
            yield outcome

    @property
    def library(self) -> str:
        """The first digits of the library's hash."""
        assert self.first is not None
        return str(self.first.notes.get("library", ""))

    @property
    def judge(self) -> str:
        """Who voted."""
        assert self.first is not None
        return next((vote.judge for vote in self.first.votes), "")

    @property
    def depth(self) -> int | None:
        """How many questions of a cluster were asked."""
        assert self.first is not None
        found = self.first.notes.get("depth")
        return found if isinstance(found, int) else None


async def run(args: argparse.Namespace) -> int:
    """Read, count, print."""
    if args.md and args.json:
        raise ConfigError("--md and --json both want standard output; choose one of them")
    report = await report_for(args)
    found = tables(report)
    if args.html is not None:
        write_whole(args.html, page(report, found).encode())
    if args.json:
        print(msgspec.json.encode(report).decode())
    else:
        print(drawn(found, "md" if args.md else "terminal"), end="")
    return status.OK


async def report_for(args: argparse.Namespace) -> "Report":
    """The report that the arguments ask for.

    Raises:
        InputError: a file cannot be read or holds something else.
        ConfigError: packages are missing, or the arguments contradict each other.
    """
    with needs("analysis", "sesse evaluate"):
        from dikast.analysis.sesse_report import report_of
        from dikast.analysis.sesse_rungs import Step

    if args.weights and args.library is None:
        raise ConfigError("--weights needs the weights: name the library with --library")
    holistic = verdicts_in(args.holistic)
    log = Log(args.outcomes, holistic)
    library = None if args.library is None else load_library(args.library)
    cosines = await _cosines(args, log.rows)
    rows = [as_row(each, cosines) for each in log.rows]
    reference = None
    if args.reference is not None:
        reference = [as_row(each, {}) for each in Log(args.reference, holistic).rows]
    return report_of(
        rows,
        _source(log),
        by_depth=replayed(log.rows, library, weighted=args.weights),
        steps=[
            Step(part.name, part.pick, label, part.calls, part.cost_usd)
            for label, part in log.parts
        ],
        others=_others(args.transfer, holistic),
        reference=reference,
        thresholds=_thresholds(args.thresholds),
    )


def _source(log: Log) -> "Source":
    from dikast.analysis.sesse_report import Source

    assert log.first is not None
    shares = [each.cached_share for each in log.rows if each.cached_share is not None]
    return Source(
        library=log.library,
        judge=log.judge,
        depth=log.depth,
        spec=log.first.spec,
        simulated=log.simulated,
        left_out=log.left_out,
        calls_per_row=log.calls / log.count if log.count else None,
        cached_share=sum(shares) / len(shares) if shares else None,
    )


def as_row(row: Logged, cosines: dict[str, float]) -> "EvalRow":
    """A row of the log as the tables count it; verdict and pooled votes are the run's own."""
    return _eval_row(row, row.winner, row.a or 0.0, row.b or 0.0, row.tie, cosines.get(row.id))


def _eval_row(
    row: Logged,
    winner: Winner | None,
    a: float,
    b: float,
    tie: str | None,
    cosine: float | None,
    depth: int | None = None,
) -> "EvalRow":
    from dikast.analysis.sesse_rows import EvalRow, QuestionVote

    casts = row.casts if depth is None else prefix(row.casts, depth)
    return EvalRow(
        id=row.id,
        label=row.label,
        sesse=winner,
        holistic=row.holistic,
        subset=row.subset,
        a=a,
        b=b,
        tie=tie,
        selected=row.selected,
        votes=tuple(QuestionVote(each.qid, each.cid, each.rank, each.pick) for each in casts),
        cosine=cosine,
        calls=row.calls,
    )


def replayed(
    rows: Sequence[Logged], library: Library | None, *, weighted: bool
) -> dict[int, list["EvalRow"]]:
    """The same rows at every depth; empty where votes were not asked to the end."""
    if any(row.spared for row in rows):
        return {}
    replay = None if library is None else Replay(library, weighted=weighted)
    deepest = max((cast.rank + 1 for row in rows for cast in row.casts), default=0)
    found: dict[int, list[EvalRow]] = {}
    for depth in range(1, deepest + 1):
        found[depth] = []
        for row in rows:
            if replay is None:
                casts = tuple(first_votes(row.casts))
                pooled = pool(prefix(casts, depth), selected=len(row.selected))
                shown = msgspec.structs.replace(row, casts=casts)
            else:
                pooled = replay.pooled(row, depth)
                shown = msgspec.structs.replace(row, casts=tuple(replay.casts(row, depth)))
            found[depth].append(
                _eval_row(shown, pooled.winner, pooled.a, pooled.b, pooled.reason, None, depth)
            )
    return found


def _others(paths: Sequence[str], holistic: dict[str, Winner]) -> list["Run"]:
    from dikast.analysis.sesse_report import Run

    logs = [Log(path, holistic) for path in paths]
    return [
        Run(log.library, log.judge, tuple(as_row(each, {}) for each in log.rows)) for log in logs
    ]


def _thresholds(path: str | None) -> "Thresholds | None":
    """The limits of the failure classes in a report of other rows."""
    if path is None:
        return None
    from dikast.analysis.sesse_votes import Thresholds

    try:
        raw = msgspec.json.decode(Path(path).read_bytes())
        return msgspec.convert(raw["taxonomy"]["thresholds"], Thresholds)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    except (msgspec.DecodeError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            "is no report of sesse evaluate; make one with --json on development rows", file=path
        ) from error


async def _cosines(args: argparse.Namespace, rows: Sequence[Logged]) -> dict[str, float]:
    """How near the two answers of each pair are; long answers by the mean of their pieces."""
    if not args.pairs:
        return {}
    pairs, _ = await rows_of(args.pairs, args.format, None)
    wanted = {row.id for row in rows}
    kept = [each for each in pairs if each.id in wanted]
    pieces = [_pieces(text) for each in kept for text in (each.response_a, each.response_b)]
    vectors = await _vectors(args, [piece for each in pieces for piece in each])
    means: list[list[float]] = []
    start = 0
    for each in pieces:
        found = vectors[start : start + len(each)]
        means.append([sum(values) / len(found) for values in zip(*found, strict=True)])
        start += len(each)
    return {pair.id: _cosine(means[2 * at], means[2 * at + 1]) for at, pair in enumerate(kept)}


async def _vectors(args: argparse.Namespace, texts: Sequence[str]) -> list[list[float]]:
    """A vector for each text; those of an endpoint are paid for once and kept beside the outcomes.

    Raises:
        ConfigError, RunStopped: as `embedded`.
    """
    from dikast.commands.sesse_embedder import build_embedder
    from dikast.strategies.sesse.embedding import StoredEmbedder, embedded

    settings = Settings() if args.config is None else load_settings(Path(args.config))
    embedder = build_embedder(args.embedder, settings, clock=SystemClock())
    # What is worked out on this machine costs nothing, and a report leaves no file behind.
    paid = ":" in args.embedder
    store = open_store(wiring.store_path(settings, Path(args.outcomes))) if paid else None
    try:
        return await embedded(StoredEmbedder(embedder, store), texts)
    finally:
        await embedder.aclose()
        if store is not None:
            await store.aclose()


def _pieces(text: str) -> list[str]:
    """A text in pieces that no encoder cuts; at least one."""
    return [text[at : at + _CHUNK_CHARS] for at in range(0, len(text), _CHUNK_CHARS)] or [" "]


def _cosine(first: Sequence[float], second: Sequence[float]) -> float:
    dot = sum(a * b for a, b in zip(first, second, strict=True))
    norms = sum(a * a for a in first) * sum(b * b for b in second)
    return float(dot / norms**0.5) if norms > 0 else 0.0
