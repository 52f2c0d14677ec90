"""What a report costs: a million outcomes of 20 models before two judges, to the page.

    python -m bench.report [--outcomes 1000000] [--pairs 0]

Writes outcomes as `dikast judge` does to a temporary file, each asked in both orders, with labels
and prompts, and runs `dikast report` on them in a process of its own; with --pairs N the texts of
the first N pairs are given too.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bench.harness import report
from dikast.engine.model import Basis, Marks, Pick, Verdict, Vote, Winner

MODELS = 20
OUTCOMES_A_PROMPT = 10
NAMES: tuple[Winner, ...] = ("A", "B", "tie")


def write_outcomes(path: Path, outcomes: int) -> None:
    """Verdicts of a judge that is right three times in four and leans to the first answer."""
    rng = np.random.default_rng(0)
    encode = msgspec.json.Encoder().encode
    with path.open("wb", buffering=1 << 20) as file:
        for place in range(outcomes):
            i, j = rng.choice(MODELS, 2, replace=False).tolist() if place % 7 == 0 else (
                place % MODELS,
                (place * 3 + 1) % MODELS,
            )  # fmt: skip
            label = NAMES[int(rng.integers(0, 3))]
            first: Pick = label if rng.random() < 0.75 else "A"
            second: Pick = label if rng.random() < 0.75 else "B"
            agree = first == second
            winner: Winner = label if agree and first == label else "tie"
            basis: Basis = "agree" if agree else "disagree"
            verdict = Verdict(
                id=f"bench:{place:08d}",
                winner=winner,
                basis=basis,
                marks=Marks(votes=2, margin=1.0 if agree else 0.0, majority_share=0.5 + agree / 2),
                votes=(
                    Vote(judge=f"judge{place % 2}", order="ab", pick=first, key="0" * 32),
                    Vote(judge=f"judge{place % 2}", order="ba", pick=second, key="1" * 32),
                ),
                strategy="swap@1",
                spec="9b843c36530b47b7",
                calls=2,
                cost_usd=0.0002,
                label=label,
                category=f"category {place % 8}",
                model_a=f"model-{i:03d}",
                model_b=f"model-{j:03d}",
                meta={"prompt_id": str(place // OUTCOMES_A_PROMPT)},
                file="pairs.jsonl",
                line=place + 1,
            )
            file.write(encode(verdict) + b"\n")


def write_pairs(path: Path, pairs: int) -> None:
    """Texts of about 400 characters an answer."""
    rng = np.random.default_rng(1)
    with path.open("w", encoding="utf-8") as file:
        for place in range(pairs):
            words = rng.integers(2, 12, 2).tolist()
            row = {
                "id": f"bench:{place:08d}",
                "question": f"Question {place // OUTCOMES_A_PROMPT}?",
                "response_a": "The moon pulls the water nearest to it. " * words[0],
                "response_b": "- The sea is **deeper** at night, so it rises.\n" * words[1],
            }
            file.write(json.dumps(row) + "\n")


def main() -> None:
    """Write, run, print and keep the results."""
    parser = argparse.ArgumentParser(description="What a report costs.")
    parser.add_argument("--outcomes", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, page = Path(folder) / "outcomes.jsonl", Path(folder) / "report.html"
        write_outcomes(path, args.outcomes)
        words = ["report", str(path), "-o", str(page)]
        if args.pairs:
            write_pairs(Path(folder) / "pairs.jsonl", args.pairs)
            words += ["--pairs", str(Path(folder) / "pairs.jsonl")]
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "dikast", *words], check=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        results: dict[str, Any] = {
            "outcomes": args.outcomes,
            "pairs_with_texts": args.pairs,
            "file_mb": round(path.stat().st_size / 2**20, 1),
            "page_mb": round(page.stat().st_size / 2**20, 2),
            "wall_s": round(time.perf_counter() - started, 1),
            "cpu_s": round(used.ru_utime + used.ru_stime, 1),
            "peak_rss_mb": round(used.ru_maxrss / 1024, 1),
        }
        report("report", results)


if __name__ == "__main__":
    main()
