"""`dikast check`: what a configuration amounts to, and whether it would work, before it is paid."""

import argparse
import asyncio
import functools
import os
from collections.abc import Callable
from typing import Any

import msgspec

from dikast import pacing, settling, status, wiring
from dikast.commands import injection
from dikast.commands.check_cost import Cost, cost_of
from dikast.commands.choices import choices_from
from dikast.config import Settings
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, DikastError, ProviderError
from dikast.engine.files import check_output
from dikast.engine.model import Record
from dikast.engine.places import STDIN, is_remote, places
from dikast.engine.ports import Clock
from dikast.engine.spec import spec_hash, spec_tree
from dikast.preflight import see_extras
from dikast.providers import OpenAIChatSettings
from dikast.rates import Measured, read_rates
from dikast.strategies import ASSUMED, Rates
from dikast.tree import calls_text, tree_lines

CHECK_TIMEOUT_S = 15.0


class ProviderFinding(Record, frozen=True):
    """What is known of one provider. `problem` is one sentence, absent when all is well."""

    name: str
    kind: str
    where: str = ""
    key: str = "none needed"
    reachable: bool | None = None
    problem: str | None = None


async def run(args: argparse.Namespace) -> int:
    """Print what is there; exit status 2 when something would not work."""
    if args.injection:
        return await injection.run(args)
    if args.max_flip_rate is not None or args.clean is not None:
        raise ConfigError("--max-flip-rate and --clean belong to --injection; add that")
    settings = settling.settle(choices_from(args))
    strategy = wiring.build_strategy(settings)
    used = {judge.provider for judge in wiring.judges_in(settings).values()}
    clock = SystemClock()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_examine(name, settings, clock, offline=args.offline))
            for name in sorted(used)
        ]
    found = [task.result() for task in tasks]
    measured = None if args.rates is None else read_rates(args.rates)
    problems = [f"providers.{each.name}: {each.problem}" for each in found if each.problem]
    problems += await _places(args, settings)
    cost: Cost | None = None
    if not problems:
        try:
            cost = await cost_of(args.pairs, settings, clock)
        except DikastError as error:
            problems.append(str(error))
    if args.json:
        told = _machine(settings, strategy, found, problems, measured)
        told["cost"] = None if cost is None else msgspec.to_builtins(cost)
        print(msgspec.json.encode(told).decode())
    else:
        print("\n".join(_lines(settings, strategy, found, measured)))
        print("".join(f"{line}\n" for line in ([] if cost is None else cost.lines())), end="")
        for problem in problems:
            print(f"problem: {problem}")
        print("ready to judge" if not problems else f"{len(problems)} problem(s)")
    return status.BAD_INPUT if problems else status.OK


async def _places(args: argparse.Namespace, settings: Settings) -> list[str]:
    """What would keep the run to come from its inputs, its outputs and the limit it shares."""
    outputs = [] if args.output is None else [args.output]
    looks: list[Callable[[], None]] = [
        *(functools.partial(_see_input, each, settings.input.split) for each in args.pairs),
        *(functools.partial(_see_output, each) for each in outputs),
        *(functools.partial(see_extras, written=[each]) for each in args.sink),
    ]
    found: list[str] = []
    for look in looks:
        try:
            look()
        except DikastError as error:
            found.append(str(error))
    try:
        see_extras(shared_limit=settings.pacing.shared is not None)
        if not args.offline:
            await pacing.check_shared(settings.pacing)
    except DikastError as error:
        found.append(str(error))
    return found


def _see_input(where: str, split: str | None) -> None:
    see_extras(read=[where])
    if _is_here(where):
        places(where, split)


def _see_output(where: str) -> None:
    wiring.check_output_name(where)
    see_extras(written=[where])
    if _is_here(where):
        check_output(where)


def _is_here(where: str) -> bool:
    """A place on this machine that can be looked at without taking anything from it."""
    return where != STDIN and not is_remote(where)


async def _examine(
    name: str, settings: Settings, clock: Clock, *, offline: bool
) -> ProviderFinding:
    """Build one provider and ask whether it answers."""
    table = settings.providers[name].settings
    found = ProviderFinding(
        name=name,
        kind=str(table.__struct_config__.tag),
        where=table.base_url if isinstance(table, OpenAIChatSettings) else "in this process",
        key=_key_state(table),
    )
    try:
        provider = wiring.build_provider(name, settings, clock=clock)
    except DikastError as error:
        return msgspec.structs.replace(found, problem=_without(str(error), f"providers.{name}"))
    try:
        if offline:
            return found
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            await provider.check()
    except ProviderError as error:
        return msgspec.structs.replace(
            found, reachable=error.kind == "auth", problem=f"{error.message} ({error.kind})"
        )
    except TimeoutError:
        return msgspec.structs.replace(
            found, reachable=False, problem=f"no answer within {CHECK_TIMEOUT_S:g} s"
        )
    finally:
        await provider.aclose()
    return msgspec.structs.replace(found, reachable=True)


def _key_state(table: object) -> str:
    if not isinstance(table, OpenAIChatSettings) or table.api_key_env is None:
        return "none needed"
    state = "set" if os.environ.get(table.api_key_env, "").strip() else "NOT SET"
    return f"{table.api_key_env} is {state}"


def _without(message: str, place: str) -> str:
    return message.removeprefix(place).lstrip(":. ")


def _lines(
    settings: Settings, strategy: Any, found: list[ProviderFinding], measured: Measured | None
) -> list[str]:
    assert settings.strategy is not None
    out: list[str] = []
    for each in found:
        reach = {None: "not contacted", True: "reachable", False: "not reachable"}[each.reachable]
        out.append(f"provider {each.name}: {each.kind}, {each.where}, key {each.key}, {reach}")
        limits = settings.providers[each.name].limits
        out.append(
            f"  limits: {_limit(limits.requests_per_min)} requests/min, "
            f"{_limit(limits.tokens_per_min)} tokens/min, concurrency {limits.concurrency}"
        )
    for name, judge in wiring.judges_in(settings).items():
        prices = judge.prices
        price = f"${prices.input:g} in, ${prices.output:g} out per million" if prices else "unknown"
        out.append(f"judge {name}: {judge.model} behind {judge.provider}, price {price}")
    rates = ASSUMED if measured is None else measured.rates
    rows = wiring.calls_tree(settings, rates)
    out.append(f"strategy {strategy.name}, calls per pair: {calls_text(rows[0].calls)}")
    out += tree_lines(rows)
    if any(row.calls.fewest != row.calls.most for row in rows):
        out += _basis(measured, rates)
    if measured is not None and measured.spec == spec_hash(spec_tree(strategy)):
        out.append(f"  in that output, of this very strategy: {measured.mean_calls:.2f} on average")
    return out


def _basis(measured: Measured | None, rates: Rates) -> list[str]:
    """What the expected number of calls rests on."""
    where = "assumed; measure them with --rates OUT.jsonl"
    if measured is not None:
        where = f"measured on {measured.pairs:,} outcomes, {measured.verdicts:,} verdicts"
        if measured.missing:
            where += f"; assumed: {', '.join(measured.missing)}"
    like, against, tie, none = rates.votes
    out = [
        f"  expected calls rest on rates ({where}): unparsed {rates.unparsed:.1%}, tie "
        f"{rates.tie:.1%}, disagreement {rates.disagreement:.1%}, margin below 0.5 "
        f"{rates.low_margin:.1%}, failed {rates.failed:.1%}; of the votes {like:.1%} as the "
        f"winner's, {against:.1%} against it, {tie:.1%} tie, {none:.1%} none"
    ]
    if rates.rungs:
        shares = ", ".join(f"{share:.1%}" for share in rates.rungs[:-1])
        out.append(f"  sent on by each rung but the last: {shares or 'none'}")
    return out


def _limit(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _machine(
    settings: Settings,
    strategy: Any,
    found: list[ProviderFinding],
    problems: list[str],
    measured: Measured | None,
) -> dict[str, Any]:
    assert settings.strategy is not None
    rates = ASSUMED if measured is None else measured.rates
    calls = wiring.calls_tree(settings, rates)[0].calls
    return {
        "ready": not problems,
        "problems": problems,
        "providers": [
            {name: getattr(each, name) for name in each.__struct_fields__} for each in found
        ],
        "judges": {
            name: msgspec.to_builtins(judge) for name, judge in wiring.judges_in(settings).items()
        },
        "strategy": strategy.name,
        "tree": msgspec.to_builtins(settings.strategy),
        "calls_per_pair": {
            "min": calls.fewest,
            "expected": round(calls.expected, 4),
            "max": calls.most,
        },
        "rates": {
            "measured_on": None if measured is None else measured.pairs,
            **{name: getattr(rates, name) for name in rates.__struct_fields__},
        },
    }
