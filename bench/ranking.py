"""What a ranking costs: 100 models and a million verdicts, from the file to the intervals.

    python -m bench.ranking [--battles 1000000] [--models 100] [--judges 2]

Writes outcomes as `dikast judge` does to a temporary file, each pair once before every judge and
one prompt for every 20 verdicts. Reads them once, and gives what was read to every other case: the
fit with the sandwich, the bootstrap, Davidson's ties, a prompt for every battle, Dawid-Skene, and
the proposal of the next battles. The live ranking reads for itself. Each case has a process of its
own.
"""

import argparse
import json
import pickle
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bench.harness import cpu_s, in_child, report
from dikast.analysis.ranking import (
    BattleLog,
    BattleReader,
    LiveRanking,
    RankSettings,
    dawid_skene,
    propose,
    rank,
)
from dikast.engine.model import Verdict, Vote, Winner

CASES = (
    "read",
    "rank",
    "bootstrap",
    "davidson",
    "one battle a prompt",
    "dawid-skene",
    "next 100",
    "live",
)
BATTLES_A_PROMPT = 20
RIGHT = 0.8
"""How often a judge says what the pair's result is; else it says any of the three."""


def write_outcomes(path: Path, battles: int, models: int, judges: int) -> None:
    """Verdicts of a known world, one line each, in the shape of a run's output."""
    rng = np.random.default_rng(0)
    strengths = rng.normal(0, 0.8, models)
    pairs = -(-battles // judges)
    a = rng.integers(0, models, pairs)
    b = (a + rng.integers(1, models, pairs)) % models
    p = 1 / (1 + np.exp(strengths[b] - strengths[a]))
    drawn = rng.random(pairs)
    result = np.where(drawn > 0.85, 2, np.where(drawn < 0.85 * p, 0, 1))
    names: tuple[Winner, ...] = ("A", "B", "tie")
    said = np.where(
        rng.random((judges, pairs)) < RIGHT, result, rng.integers(0, 3, (judges, pairs))
    )
    met, told = np.column_stack([a, b]).tolist(), said.T.tolist()
    encode = msgspec.json.Encoder().encode
    with path.open("wb", buffering=1 << 20) as file:
        for place in range(battles):
            pair, judge = divmod(place, judges)
            (i, j), winner = met[pair], names[told[pair][judge]]
            verdict = Verdict(
                id=f"{pair}:{i}:{j}",
                winner=winner,
                basis="agree",
                votes=(
                    Vote(judge=f"judge{judge}", order="ab", pick=winner),
                    Vote(judge=f"judge{judge}", order="ba", pick=winner),
                ),
                strategy="swap@1",
                spec="9b843c36530b47b7",
                model_a=f"model-{i:03d}",
                model_b=f"model-{j:03d}",
                meta={"prompt_id": str(place // BATTLES_A_PROMPT)},
            )
            file.write(encode(verdict) + b"\n")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and the result."""
    started = time.perf_counter()
    found = work()
    return round(time.perf_counter() - started, 2), found


def measure(case: str, path: Path, columns: Path) -> dict[str, float]:
    """One case in this process; "read" leaves the battles in `columns` for the others."""
    if case == "live":
        return _live(path)
    if case == "read":
        log = BattleLog()
        read_s, _ = timed(lambda: BattleReader(log).read(path))
        columns_s, battles = timed(log.finish)
        columns.write_bytes(pickle.dumps(battles, protocol=5))
        return {"read_s": read_s, "columns_s": columns_s, "battles": len(battles)}
    battles = pickle.loads(columns.read_bytes())
    works: dict[str, Callable[[], Any]] = {
        "rank": lambda: rank(battles),
        "bootstrap": lambda: rank(battles, RankSettings(interval="bootstrap")),
        "davidson": lambda: rank(battles, RankSettings(model="davidson")),
        "one battle a prompt": lambda: rank(
            replace(battles, cluster=np.arange(len(battles))), RankSettings(interval="bootstrap")
        ),
        "dawid-skene": lambda: rank(dawid_skene(battles).battles),
        "next 100": lambda: propose(rank(battles), 100),
    }
    work_s, _ = timed(works[case])
    return {"work_s": work_s}


def _live(path: Path) -> dict[str, float]:
    live = LiveRanking()
    decode = msgspec.json.Decoder(Verdict).decode

    def add_all() -> None:
        with path.open("rb") as file:
            for line in file:
                live.add(decode(line))

    add_s, _ = timed(add_all)
    live.rows()
    again_s, _ = timed(live.rows)
    return {"add_all_s": add_s, "refit_s": again_s}


def peak_rss_mb() -> float:
    """The most memory this process has had, in MiB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def main() -> None:
    """Run all cases; print and keep the results."""
    parser = argparse.ArgumentParser(description="What a ranking costs.")
    parser.add_argument("--battles", type=int, default=1_000_000)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--judges", type=int, default=2)
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        measured = measure(args.case, *args.paths)
        # On a machine that others use, too, this is the figure that stays as it is.
        print(json.dumps({**measured, "cpu_s": round(cpu_s(), 2), "peak_rss_mb": peak_rss_mb()}))
        return
    with tempfile.TemporaryDirectory() as folder:
        path, columns = Path(folder) / "outcomes.jsonl", Path(folder) / "battles.pickle"
        write_outcomes(path, args.battles, args.models, args.judges)
        results: dict[str, Any] = {
            "battles": args.battles,
            "models": args.models,
            "file_mb": round(path.stat().st_size / 2**20, 1),
        }
        for case in CASES:
            results[case] = in_child("bench.ranking", case, path, columns)
    report("ranking", results)


if __name__ == "__main__":
    main()
