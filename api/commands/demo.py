"""`dikast demo`: the shipped pairs, a simulated judge behind real HTTP, without and with swapping.

Shows on one screen what the engine does and what swapping is good for. The judge is made up (a
server in this process, with a stated accuracy and a visible liking for the answer shown first);
everything between it and the outcomes is the real thing.
"""

import argparse
import contextlib
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from dikast import status, wiring
from dikast.commands.demo_figures import Figures, figures_of, percent
from dikast.commands.judge import report_lines
from dikast.config import Settings, parse_settings
from dikast.engine.clock import SystemClock
from dikast.engine.errors import InputError
from dikast.engine.model import Outcome
from dikast.engine.run import RunReport
from dikast.outputs import Output
from dikast.progress import Progress
from dikast.sinks import JsonlSink

SERVER = {
    "accuracy": 0.83,
    "position_bias": 0.12,
    "tie_rate": 0.02,
    "garbage_rate": 0.01,
    "error_rate": 0.02,
    "latency_s": 0.03,
    "latency_kind": "lognormal",
    "latency_spread": 0.4,
}
WAYS = ("single", "swap")


async def run(args: argparse.Namespace) -> int:
    """Judge twice and compare."""
    folder = Path(args.output)
    try:
        _clear(folder)
    except OSError as error:
        raise InputError(f"cannot be used: {error.strerror}", file=args.output) from error
    with resources.as_file(resources.files("dikast.data") / "demo_pairs.jsonl") as pairs:
        truth = await wiring.read_truth(str(pairs))
        server = await wiring.start_server(
            {**SERVER, "seed": args.seed}, host="127.0.0.1", port=0, truth=truth
        )
        try:
            runs = [await _judge(args, folder, pairs, server.url, way) for way in WAYS]
        finally:
            await server.aclose()
    served = server.stats().requests
    figures = {way: figures_of(read_outcomes(_output(folder, way))) for way in WAYS}
    if args.json:
        print(msgspec.json.encode(_machine(folder, figures, runs, served)).decode())
    else:
        _show(folder, figures, runs, served)
    return max(status.of_report(report) for report in runs)


def _output(folder: Path, way: str) -> Path:
    return folder / f"demo-{way}.jsonl"


def _clear(folder: Path) -> None:
    """Every demo starts anew; only files that a demo writes are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("demo-single.jsonl*", "demo-swap.jsonl*", "demo-calls.sqlite*"):
        for path in folder.glob(pattern):
            path.unlink()


def _settings(url: str, way: str, seed: int) -> Settings:
    judge: dict[str, Any] = {"kind": "pairwise", "judge": "demo-judge"}
    return parse_settings(
        {
            "providers": {
                "loopback": {
                    "kind": "openai",
                    "base_url": url,
                    "api_key_env": "",
                    # Our own server has no limit to be careful of.
                    "concurrency_start": 64,
                }
            },
            "judges": {
                "demo-judge": {
                    "provider": "loopback",
                    "model": "demo-judge",
                    "prices": {"input": 0.15, "output": 0.6},
                }
            },
            "strategy": judge if way == "single" else {"kind": "swap", "inner": judge},
            "run": {"seed": seed, "workers": 64},
        }
    )


async def _judge(
    args: argparse.Namespace, folder: Path, pairs: Path, url: str, way: str
) -> RunReport:
    """One run, with everything that `dikast judge` does, into the demo's folder."""
    clock = SystemClock()
    path = _output(folder, way)
    output = Output(str(path), argv=args.argv, clock=clock)
    progress = Progress(clock)
    settings = _settings(url, way, args.seed)
    store = folder / "demo-calls.sqlite"
    async with wiring.build_engine(
        settings, store=store, observers=(progress,), clock=clock
    ) as engine:
        output.begin(
            engine.spec,
            engine.spec_tree,
            engine.strategy_name,
            inputs=["demo_pairs.jsonl"],
            seed=args.seed,
            simulated=True,
        )
        async with contextlib.aclosing(JsonlSink(path)) as sink:
            report = await engine.run(wiring.open_source([str(pairs)]), sink)
        output.end(report, simulated=True)
    return report


def read_outcomes(path: Path) -> list[Outcome]:
    """All outcomes of an output."""
    decoder = msgspec.json.Decoder(Outcome)
    with path.open("rb") as lines:
        return [decoder.decode(line) for line in lines]


def _show(folder: Path, figures: dict[str, Figures], runs: list[RunReport], served: int) -> None:
    single, swap = figures["single"], figures["swap"]
    print("SIMULATED judges over real loopback HTTP; no model was asked, nothing was paid.")
    print(
        f"The judge favours the better answer with probability {SERVER['accuracy']}, plus or minus "
        f"{SERVER['position_bias']} for what is shown first.\n"
    )
    for way, report in zip(WAYS, runs, strict=True):
        for line in report_lines(report, str(_output(folder, way)), simulated=True):
            print(line)
        print()
    print(f"{'':<34}{'single':<26}{'swap (both orders)'}")
    for name, left, right in (
        ("right, a tie counts half", single.right_ties_half, swap.right_ties_half),
        ("right, a tie counts as wrong", single.right_of_all, swap.right_of_all),
        ("right, of those decided", single.right_of_decided, swap.right_of_decided),
        ("decided (not a tie)", single.decided, swap.decided),
        ("picked the answer shown first", single.first_picked, swap.first_picked),
        ("the two orders disagree", None, swap.inconsistent),
    ):
        print(f"{name:<34}{percent(left):<26}{percent(right)}")
    print("\nIn brackets: Wilson 95 % intervals, in per cent. A tie where the label is a tie is")
    print("right in every row; the first two rows differ in what any other tie counts. Decided:")
    print("label and verdict are both A or B. Undecided pairs are in the ledger and nowhere here.")
    again = runs[1].ledger.stored_calls
    print(
        f"\n{served:,} requests were served; {again:,} of the {runs[1].ledger.calls:,} calls of "
        "swap had been asked by single and came from the call store."
    )
    print(
        f"Outcomes, manifests and the call store lie in {folder}/ (every outcome says simulated)."
    )
    sys.stdout.flush()


def _machine(
    folder: Path, figures: dict[str, Figures], runs: list[RunReport], served: int
) -> dict[str, Any]:
    return {
        "simulated": True,
        "requests_served": served,
        "runs": {
            way: {
                "output": str(_output(folder, way)),
                "adds_up": report.ledger.adds_up(),
                "ledger": msgspec.to_builtins(report.ledger),
                "duration_s": round(report.duration_s, 3),
                "figures": msgspec.to_builtins(figures[way]),
            }
            for way, report in zip(WAYS, runs, strict=True)
        },
    }
