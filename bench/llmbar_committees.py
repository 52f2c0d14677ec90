"""Is a committee better than its best judge? Recorded judges of LLMBar's adversarial pairs answer.

    .venv/bin/python -m bench.llmbar_committees ../shared/data

Compares gpt-4 alone, the plain committee of six, the same committee with measured weights, and
cascades from a cheap judge to gpt-4. Weights are measured on one half of the questions and used on
the other, then the other way round, so every pair is judged with weights that never saw it. All of
it goes through configurations, the engine and the replay provider, the weights through
`dikast weights`.
"""

import argparse
import asyncio
import contextlib
import hashlib
import io
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench.recorded import (
    LLMBAR_PROMPTS,
    Played,
    Recorded,
    both_orders,
    configuration,
    labelled_pairs,
    llmbar,
    panel,
    play,
)
from dikast.analysis.intervals import Interval, cluster_bootstrap, sums_by_cluster, wilson
from dikast.analysis.significance import mcnemar
from dikast.cli import main as dikast
from dikast.engine.model import Pair
from dikast.tables import Measure, P, Share, Table, render

BEST = "gpt-4"
ALONE = "gpt-4 alone"
PLAIN = "committee of six"
MEASURED = "committee, measured weights"
CASCADES = {
    "cascade chatgpt -> gpt-4": ("chatgpt", BEST),
    "cascade palm2 -> gpt-4": ("palm2", BEST),
}
SUBSETS = ("GPTInst", "GPTOut", "Manual", "Neighbor")
SALT = "weights-v1:"
SEED = 0
LoopFactory = Callable[[], asyncio.AbstractEventLoop] | None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy on all pairs. `right` and `calls` are per pair, in the order of the pairs.

    `best_calls` counts those of gpt-4. `gap` is right minus that of gpt-4 alone, as a share, with
    the interval over questions; `p` is McNemar's mid-p of the same comparison.
    """

    name: str
    right: tuple[bool, ...]
    tie: int
    calls: int
    best_calls: int
    gap: float
    gap_interval: Interval | None
    p: float

    @property
    def n(self) -> int:
        """How many pairs."""
        return len(self.right)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What one prompt came to: a row for each strategy, and the weights of both halves."""

    kind: str
    rows: dict[str, Row]
    halves: tuple[int, int]
    weights: tuple[dict[str, float], dict[str, float]]


def half_of(pair: Pair) -> int:
    """0 or 1 by the question alone, so that a question is on one side only."""
    return int(hashlib.sha256((SALT + pair.question).encode()).hexdigest()[:8], 16) % 2


def adversarial(data: Path) -> list[Pair]:
    """LLMBar's pairs whose worse answer was made to look better."""
    pairs, subsets = labelled_pairs(data, "llmbar")
    return [pair for pair in pairs.values() if subsets[pair.id] in SUBSETS]


class Runner:
    """Plays strategies, each in a loop of its own; `loop_factory` None is asyncio's own."""

    def __init__(self, loop_factory: LoopFactory = None) -> None:
        self._loop_factory = loop_factory

    def __call__(
        self, judges: Mapping[str, Recorded], strategy: Mapping[str, Any], pairs: list[Pair]
    ) -> Played:
        """One run over the pairs."""
        with asyncio.Runner(loop_factory=self._loop_factory) as runner:
            return runner.run(play(configuration(judges, strategy), pairs))


def measure(played: Played, folder: Path, name: str) -> Path:
    """Write a run's outcomes as `dikast judge` does, and have `dikast weights` measure them."""
    out, weights = folder / f"{name}.jsonl", folder / f"{name}.json"
    lines = (msgspec.json.encode(each) + b"\n" for each in played.outcomes.values())
    out.write_bytes(b"".join(lines))
    with contextlib.redirect_stdout(io.StringIO()):
        status = dikast(["weights", str(out), "-o", str(weights), "--json"])
    if status != 0:
        raise RuntimeError(f"dikast weights ended with status {status}")
    return weights


def compare(data: Path, kind: str, folder: Path, loop_factory: LoopFactory = None) -> Comparison:
    """All strategies on all adversarial pairs under one prompt; files go into `folder`."""
    run = Runner(loop_factory)
    pairs = adversarial(data)
    judges = llmbar(data, kind)
    halves = [[pair for pair in pairs if half_of(pair) == half] for half in (0, 1)]
    six = panel(judges, rule="plurality", quorum=1)
    plain = [run(judges, six, half) for half in halves]
    files = [measure(each, folder, f"{kind}-{at}") for at, each in enumerate(plain)]

    def judged_by(tree: Mapping[str, Any], half: int) -> Played:
        return run(judges, tree, halves[half])

    strategies: dict[str, Callable[[int], Played]] = {
        ALONE: partial(judged_by, both_orders(BEST, judges[BEST])),
        PLAIN: lambda half: plain[half],
        # Weights of the other half.
        MEASURED: lambda half: judged_by(
            panel(judges, rule="weighted", quorum=1, weights=str(files[1 - half])), half
        ),
        **{name: partial(judged_by, cascade(judges, names)) for name, names in CASCADES.items()},
    }
    rows: dict[str, Row] = {}
    for name, judged in strategies.items():
        both = [judged(half) for half in (0, 1)]
        asked = Played(both[0].outcomes | both[1].outcomes, both[0].report)
        rows[name] = _row(name, asked, pairs, rows[ALONE].right if rows else None)
    weights = [
        {each["name"]: each["weight"] for each in json.loads(file.read_bytes())["members"]}
        for file in files
    ]
    return Comparison(
        kind=kind,
        rows=rows,
        halves=(len(halves[0]), len(halves[1])),
        weights=(weights[0], weights[1]),
    )


def cascade(judges: Mapping[str, Recorded], names: Sequence[str]) -> dict[str, Any]:
    """A `cascade` node over recorded judges, each in both orders."""
    return {"kind": "cascade", "rungs": [both_orders(name, judges[name]) for name in names]}


def _row(name: str, played: Played, pairs: list[Pair], best: tuple[bool, ...] | None) -> Row:
    winners = played.winners(pairs)
    right = tuple(winner == pair.label for winner, pair in zip(winners, pairs, strict=True))
    best = best or right
    gaps = [mine - other for mine, other in zip(right, best, strict=True)]
    sums = sums_by_cluster([pair.question for pair in pairs], [(gap, 1.0) for gap in gaps])
    votes = [vote for each in played.outcomes.values() for vote in each.votes]
    return Row(
        name=name,
        right=right,
        tie=winners.count("tie"),
        calls=sum(each.calls for each in played.outcomes.values()),
        best_calls=sum(vote.judge == BEST for vote in votes),
        gap=sum(gaps) / len(gaps),
        gap_interval=cluster_bootstrap(sums, lambda s: s[:, 0] / s[:, 1], seed=SEED),
        p=mcnemar(gaps.count(1), gaps.count(-1)).mid_p,
    )


def table(found: Comparison) -> Table:
    """One prompt's comparison as it stands in docs/committees.md."""
    rows = []
    for each in found.rows.values():
        right = sum(each.right)
        lone = each.name == ALONE
        rows.append(
            (
                each.name,
                Share(right / each.n, wilson(right, each.n)),
                Share(each.tie / each.n),
                Share((each.n - right - each.tie) / each.n),
                None if lone else Share(each.gap, each.gap_interval, signed=True),
                None if lone else P(each.p),
                Measure(each.calls / each.n, digits=2),
                Measure(each.best_calls / each.n, digits=2),
            )
        )
    said = [
        ", ".join(f"{name} {weight:.2f}" for name, weight in weights.items())
        for weights in found.weights
    ]
    n = found.rows[ALONE].n
    return Table(
        title=f"LLMBar adversarial, prompt {found.kind}",
        columns=(
            *("strategy", "right", "tie", "wrong", "right against gpt-4 alone", "p"),
            *("calls a pair", "of them gpt-4"),
        ),
        rows=tuple(rows),
        notes=(
            f"{n} pairs, none left out; a tie, or no verdict, is not right; every judge asked in "
            "both orders",
            "right: Wilson's interval; against gpt-4 alone: percentage points on the same pairs, "
            "bootstrap over questions; p: McNemar's mid-p; all at 95 %",
            f"weights measured on one half of the questions and used on the other "
            f"({found.halves[0]} and {found.halves[1]} pairs), both ways",
            f"weights from the first half: {said[0]}",
            f"weights from the second half: {said[1]}",
        ),
    )


def main() -> None:
    """Print the table of every prompt."""
    parser = argparse.ArgumentParser(description="committees and cascades on LLMBar adversarial")
    parser.add_argument("data", type=Path, help="folder of the recorded data")
    parser.add_argument("--markdown", action="store_true", help="as in docs/committees.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [compare(args.data, kind, Path(folder)) for kind in LLMBAR_PROMPTS]
    print(render([table(each) for each in found], "md" if args.markdown else "terminal"), end="")


if __name__ == "__main__":
    main()
