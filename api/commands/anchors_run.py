"""`dikast anchors run`: an anchor set through the engine, into a file that can be compared.

Anchors measure today's judge. So they are asked anew every time: no call store stands between,
unless one is named. Used by `dikast judge --anchors` too.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from dikast import settling, status, wiring
from dikast.analysis.tolerance import Tolerance
from dikast.commands.anchors_files import AnchorRun, AnchorSet, item_of, read_set, ref_of
from dikast.commands.anchors_files import write_record as write
from dikast.commands.choices import choices_from
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, RunStopped
from dikast.engine.model import Outcome
from dikast.engine.ports import Clock
from dikast.engine.run import Engine
from dikast.engine.sources import IterableSource
from dikast.extras import needed
from dikast.signals import drain_then_cancel, on_signals
from dikast.sinks import MemorySink


async def judge_set(
    engine: Engine, anchors: AnchorSet, clock: Clock, *, twice: bool = False
) -> AnchorRun:
    """Judge every item of a set.

    Args:
        engine: judges; without a store, unless stored answers are wanted.
        anchors: the set.
        clock: stamps the run.
        twice: judge all of it a second time, to know the judge's own noise.

    Raises:
        RunStopped: not every item could be judged; half a run is no measurement.
    """
    made = await _judge_once(engine, anchors, clock)
    if not twice:
        return made
    again = await _judge_once(engine, anchors, clock)
    return msgspec.structs.replace(
        made,
        items=tuple(
            msgspec.structs.replace(one, again=two.winner)
            for one, two in zip(made.items, again.items, strict=True)
        ),
        calls=made.calls + again.calls,
        stored_calls=made.stored_calls + again.stored_calls,
        # What the engine has spent by now, the first time included.
        cost_usd=again.cost_usd,
    )


async def _judge_once(engine: Engine, anchors: AnchorSet, clock: Clock) -> AnchorRun:
    sink = MemorySink()
    report = await engine.run(IterableSource(anchors.pairs, name="anchors"), sink)
    if report.stopped is not None:
        done = len(sink.outcomes)
        raise RunStopped(
            report.stopped,
            f"{report.message or report.stopped}; {done} of {len(anchors.pairs)} anchors were "
            "judged, which is no measurement, and none is kept",
        )
    place = {pair.id: number for number, pair in enumerate(anchors.pairs)}
    outcomes: list[Outcome] = sorted(sink.outcomes, key=lambda each: place[each.id])
    return AnchorRun(
        kind="anchor_run",
        anchors=ref_of(anchors),
        spec=engine.spec,
        spec_tree=msgspec.to_builtins(engine.spec_tree),
        strategy=engine.strategy_name,
        judged=clock.stamp(),
        items=tuple(map(item_of, outcomes)),
        simulated=engine.simulated or any(each.simulated for each in outcomes),
        calls=report.ledger.calls,
        stored_calls=report.ledger.stored_calls,
        cost_usd=report.ledger.spent_usd,
    )


async def run(args: argparse.Namespace) -> int:
    """Judge the set, write the run; status 1 when an anchor failed."""
    report = needed("dikast.commands.anchors_check", "analysis", "dikast anchors run")
    settings = settling.settle(choices_from(args))
    anchors = read_set(args.anchors)
    output = _output(args)
    if args.twice and args.store is not None:
        raise ConfigError("--twice asks anew what --store would answer; choose one of them")
    clock = SystemClock()
    engine = wiring.build_engine(settings, store=args.store, clock=clock)
    async with engine:
        with on_signals(drain_then_cancel(engine)):
            made = await judge_set(engine, anchors, clock, twice=args.twice)
    write(output, made)
    _tell(args, made, settings.anchors.tolerance(), report)
    return status.FAILURES if any(each.kind == "failed" for each in made.items) else status.OK


def _output(args: argparse.Namespace) -> Path:
    output = Path(args.output)
    if output.exists() and output.samefile(args.anchors):
        raise ConfigError(f"-o {args.output}: is the anchor set itself; name another file")
    return output


def _tell(args: argparse.Namespace, made: AnchorRun, limits: Tolerance, report: Any) -> None:
    kinds: dict[str, int] = {"verdict": 0}
    for each in made.items:
        name = each.kind if each.why is None else f"{each.kind} ({each.why})"
        kinds[name] = kinds.get(name, 0) + 1
    if args.json:
        facts = {
            "anchors": msgspec.to_builtins(made.anchors),
            "output": args.output,
            "spec": made.spec,
            "strategy": made.strategy,
            "simulated": made.simulated,
            "items": len(made.items),
            "outcomes": kinds,
            **report.facts_of(made),
            "calls": made.calls,
            "stored_calls": made.stored_calls,
            "cost_usd": made.cost_usd,
        }
        print(msgspec.json.encode(facts).decode())
        return
    told = ", ".join(f"{name} {count}" for name, count in kinds.items())
    print(f"anchors {made.anchors} judged by {made.strategy}, spec {made.spec}")
    print(f"  {len(made.items)} items: {told}{' (simulated judges)' if made.simulated else ''}")
    for line in report.standing(made, limits):
        print(f"  {line}")
    print(
        f"  {made.calls} calls, {made.stored_calls} of them from the store, "
        f"${made.cost_usd:,.4f}; written to {args.output}"
    )
    for each in made.items:
        if each.kind == "failed":
            print(f"  first failure: {each.id}: {each.message}", file=sys.stderr)
            break
