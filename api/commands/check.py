"""`dikast check`: what a configuration amounts to, and whether it would work, before it is paid."""

import argparse
import asyncio
import os
from typing import Any

import msgspec

from dikast import status, wiring
from dikast.commands import injection
from dikast.commands.choices import choices_from
from dikast.config import Settings
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, DikastError, ProviderError
from dikast.engine.model import Record
from dikast.engine.ports import Clock
from dikast.providers import OpenAIChatSettings

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
    settings = wiring.settle(choices_from(args))
    strategy = wiring.build_strategy(settings)
    used = {judge.provider for judge in wiring.judges_in(settings).values()}
    clock = SystemClock()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_examine(name, settings, clock, offline=args.offline))
            for name in sorted(used)
        ]
    found = [task.result() for task in tasks]
    problems = [f"providers.{each.name}: {each.problem}" for each in found if each.problem]
    if args.json:
        print(msgspec.json.encode(_machine(settings, strategy, found, problems)).decode())
    else:
        print("\n".join(_lines(settings, strategy, found)))
        for problem in problems:
            print(f"problem: {problem}")
        print("ready to judge" if not problems else f"{len(problems)} problem(s)")
    return status.BAD_INPUT if problems else status.OK


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


def _lines(settings: Settings, strategy: Any, found: list[ProviderFinding]) -> list[str]:
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
    tree = msgspec.json.encode(settings.strategy).decode()
    out.append(f"strategy {strategy.name}: {tree}")
    fewest, most = wiring.calls_per_pair(settings)
    out.append(f"  calls per pair: {most if fewest == most else f'{fewest} to {most}'}")
    return out


def _limit(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _machine(
    settings: Settings, strategy: Any, found: list[ProviderFinding], problems: list[str]
) -> dict[str, Any]:
    assert settings.strategy is not None
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
        "calls_per_pair": dict(zip(("min", "max"), wiring.calls_per_pair(settings), strict=True)),
    }
