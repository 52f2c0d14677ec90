"""What `dikast benchmark build` prints: the plan, the account of the stages, the benchmark."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dikast.analysis.benchmark_account import Account, Rate
from dikast.tables import Measure, Share, Table


def plan_table(account: Account, calls: Sequence[Mapping[str, Any]]) -> Table:
    """The calls that a build would make, stage by stage."""
    rows = tuple((each["stage"], each["dialogues"], each["calls"]) for each in calls)
    total = sum(each["calls"] for each in calls)
    gone = ", ".join(
        f"{count:,} {reason}"
        for stage in account.stages
        for reason, count in sorted(stage.rejected.items())
    )
    return Table(
        title="Calls of a build",
        columns=("stage", "dialogues at most", "calls at most"),
        rows=(*rows, ("all", rows[0][1], total)),
        notes=(
            f"{account.rows:,} rows read; turned away before any call: {gone or 'none'}",
            "the first stage's number is exact, less what the call store holds; each later stage "
            "gets what the one before it keeps",
            "nothing was asked and nothing was written",
        ),
    )


def build_tables(report: Mapping[str, Any], folder: Path) -> list[Table]:
    """The report of a build for people."""
    tables = [_stages(report), _reasons(report), _benchmark(report), _challenge(report)]
    review = report["review"]
    if "decided" in review:
        tables.append(_people(review))
    spent = report["run"]
    note = (
        f"{spent['calls']:,} calls, {spent['stored_calls']:,} of them from the call store, "
        f"USD {spent['spent_usd']:.2f} spent; everything lies in {folder}"
    )
    tables[-1] = msgspec.structs.replace(tables[-1], notes=(*tables[-1].notes, note))
    return tables


def _stages(report: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            each["stage"],
            each["entered"],
            each["kept"],
            sum(each["rejected"].values()),
            each["repaired_dialogues"],
        )
        for each in report["stages"]
    )
    adds = "add up" if report["adds_up"] else "DO NOT ADD UP (this is a defect; report it)"
    return Table(
        title="Stages",
        columns=("stage", "entered", "kept", "turned away", "repaired"),
        rows=rows,
        notes=(
            f"{report['rows']:,} rows read = {report['kept']:,} kept + {report['rejected']:,} "
            f"turned away; the counts {adds}",
        ),
    )


def _reasons(report: Mapping[str, Any]) -> Table:
    rows: list[tuple[str, str, str, int]] = []
    for stage in report["stages"]:
        name = stage["stage"]
        rows += [(name, "turned away", why, count) for why, count in stage["rejected"].items()]
        rows += [(name, "repaired", what, count) for what, count in stage["repairs"].items()]
    return Table(
        title="Reasons and repairs",
        columns=("stage", "what", "why", "dialogues"),
        rows=tuple(rows),
        notes=(
            "a dialogue is turned away once, for the first reason; it may be repaired in several "
            "ways; rejected.jsonl names each with file and line",
        ),
    )


def _benchmark(report: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            each["topic"],
            each["dialogues"],
            each["several_turns"],
            each["with_system"],
            Measure(each["user_turns_mean"], digits=2),
            each["chars_max"],
            each["chinese"],
        )
        for each in report["benchmark"]
    )
    return Table(
        title="Benchmark",
        columns=(
            "topic",
            "dialogues",
            "several user turns",
            "with system",
            "mean user turns",
            "longest, characters",
            "mostly Chinese",
        ),
        rows=rows,
        notes=("a description of the file, not an estimate: no intervals",),
    )


def _challenge(report: Mapping[str, Any]) -> Table:
    rates = [msgspec.convert(each, Rate) for each in report["challenge"]]
    asks = ", ".join(f"{count:,} {ask}" for ask, count in report["review"]["queue"].items())
    return Table(
        title=f"Comparison by {report['models']['judge']}, both orders",
        columns=("outcome", "prompts", "share"),
        rows=tuple((each.name, each.hits, Share(each.value, each.interval)) for each in rates),
        notes=(
            f"of {rates[0].of:,} prompts with a readable verdict in both orders; intervals: "
            "Wilson, 95 %",
            "only the first are kept, so the benchmark over-represents what this judge finds "
            f"clear; people should look: review.jsonl has {asks or 'nothing'}",
        ),
    )


def _people(review: Mapping[str, Any]) -> Table:
    rates = [msgspec.convert(each, Rate) for each in review["strong_better_among_rejected"]]
    return Table(
        title="What people said of the prompts that the comparison turned away",
        columns=("reason", "strong answer better", "of", "share"),
        rows=tuple(
            (each.name, each.hits, each.of, Share(each.value, each.interval)) for each in rates
        ),
        notes=(
            f"of the kept prompts people decided {review['decided']:,} and dropped "
            f"{review['dropped']:,} (as many drops as keeps is a drop); the others stay",
            "simple random samples within a reason; more people for the strong answer than for "
            "the weak one, ties apart; intervals: Wilson, 95 %",
        ),
    )
