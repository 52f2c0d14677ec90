"""The JSONL sink alone, and the scan of what it wrote, as a resume does it.

python -m bench.sink [--outcomes 1000000]
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import harness
from dikast.engine.model import Usage, Verdict, Vote
from dikast.sinks import JsonlSink, scan_output


def outcomes(count: int) -> Iterator[Verdict]:
    """Verdicts of a swap, made one by one."""
    votes = tuple(
        Vote(judge="judge", order=order, pick="A", key="0" * 32, finish_reason="stop")
        for order in ("ab", "ba")
    )
    for place in range(count):
        yield Verdict(
            id=f"bench:{place:08d}",
            winner="A",
            basis="agree",
            votes=votes,
            usage=Usage(input=930, output=58),
            calls=2,
            strategy="swap@1",
            spec="9b843c36530b47b7",
            line=place + 1,
        )


async def write(path: Path, count: int) -> float:
    """Seconds to write `count` outcomes."""
    made = list(outcomes(count))
    sink = JsonlSink(path)
    started_s = time.perf_counter()
    for outcome in made:
        await sink.write(outcome)
    await sink.aclose()
    return time.perf_counter() - started_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outcomes", type=int, default=1_000_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.jsonl"
        with asyncio.Runner(loop_factory=harness.new_loop) as runner:
            write_s = runner.run(write(path, args.outcomes))
        started_s = time.perf_counter()
        scan = scan_output(path)
        scan_s = time.perf_counter() - started_s
        assert scan is not None
        assert scan.done == args.outcomes
        size = path.stat().st_size
    harness.report(
        "sink",
        {
            "outcomes": args.outcomes,
            "bytes_per_line": size / args.outcomes,
            "written_per_s": args.outcomes / write_s,
            "scan_s": scan_s,
        },
    )


if __name__ == "__main__":
    main()
