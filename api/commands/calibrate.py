"""`dikast calibrate`: from labelled outcomes to a map of confidences, stored as a checked file."""

import argparse
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dikast import status
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, InputError
from dikast.engine.files import pretty_json, write_whole
from dikast.extras import needs
from dikast.strategies.calibration_file import FORMAT, RAWS, Calibration, Metrics, Raw, raw_of

if TYPE_CHECKING:
    from dikast.analysis.rows import OutcomeRow

FEWEST = 30
"""Fewer labelled verdicts than these are no ground for a map."""

MAJORITY = 0.5
"""Share of the labelled verdicts that must have a number before `auto` chooses it."""


class _Data(NamedTuple):
    """Labelled verdicts, and what was left out."""

    verdicts: "list[OutcomeRow]"
    agreed: list[bool]
    left_out: Counter[str]
    spec: str
    strategy: str
    simulated: bool


async def run(args: argparse.Namespace) -> int:
    """Fit, measure, write, tell."""
    with needs("analysis", "dikast calibrate"):
        from dikast.analysis import calibration, intervals
    data = _read(args.outcomes, args.labels)
    raw = _chosen(args.raw, data)
    numbers, agreed = _numbers(raw, data)
    _enough(args.outcomes[0], numbers, agreed, data.left_out)
    if not 2 <= args.folds <= len(numbers):
        raise ConfigError(f"--folds: must lie between 2 and {len(numbers)}, not at {args.folds}")
    found = calibration.fit(args.method, numbers, agreed)
    tested = calibration.cross_validate(
        args.method, numbers, agreed, folds=args.folds, seed=args.seed
    )
    made = Calibration(
        format=FORMAT,
        method=args.method,
        raw=raw,
        spec=data.spec,
        strategy=data.strategy,
        fitted_on=len(numbers),
        agreed=sum(agreed),
        left_out=dict(sorted(data.left_out.items())),
        before=Metrics(ece=round(tested.before.ece, 6), brier=round(tested.before.brier, 6)),
        after=Metrics(ece=round(tested.after.ece, 6), brier=round(tested.after.brier, 6)),
        folds=tested.folds,
        bins=calibration.BINS,
        seed=args.seed,
        simulated=data.simulated,
        knots=found.knots,
        slope=found.slope,
        intercept=found.intercept,
        date=args.date or SystemClock().stamp()[:10],
    ).hashed()
    write_whole(args.output, pretty_json(made))
    sure = intervals.wilson(made.agreed, made.fitted_on)
    if args.json:
        print(msgspec.json.encode(_machine(args.output, made, sure)).decode())
    else:
        print("\n".join(_lines(args.outcomes, args.output, made, sure)))
    return status.OK


def _read(paths: list[str], labels: str | None) -> _Data:
    """The labelled verdicts of outcome files that were all made by one spec.

    Raises:
        InputError: a file cannot be read, or more than one spec made them.
    """
    from dikast.analysis.rows import read_labels, read_outcomes

    said: dict[str, Counter[str]] = {}
    if labels is not None:
        for row in read_labels(labels):
            said.setdefault(row.pair_id, Counter())[row.label] += 1
    last: dict[str, OutcomeRow] = {}
    specs: dict[str, str] = {}
    simulated = False
    for path in paths:
        for outcome in read_outcomes(path):
            last[outcome.id] = outcome  # a later line of an id takes the place of an earlier one
            simulated = simulated or outcome.simulated
            if outcome.spec:
                specs.setdefault(outcome.spec, outcome.strategy)
    if len(specs) != 1:
        found = ", ".join(f"{name} ({spec})" for spec, name in specs.items()) or "none"
        raise InputError(
            f"outcomes of one strategy are needed, these are of: {found}; calibrate each by itself",
            file=paths[0],
        )
    ((spec, strategy),) = specs.items()
    data = _Data([], [], Counter(), spec, strategy, simulated)
    # By id, so that the folds do not depend on which outcome was written first.
    for _, outcome in sorted(last.items()):
        label = _label(outcome, said if labels is not None else None)
        if outcome.missing is not None:
            data.left_out[outcome.missing] += 1
        elif label is None:
            data.left_out["without a label, or people are level"] += 1
        else:
            data.verdicts.append(outcome)
            data.agreed.append(outcome.winner == label)
    return data


def _label(outcome: "OutcomeRow", said: dict[str, Counter[str]] | None) -> str | None:
    """What most people say; None where nobody does, or none has more than the others."""
    if said is None:
        return outcome.label
    top = said.get(outcome.id, Counter[str]()).most_common(2)
    if not top or (len(top) == 2 and top[0][1] == top[1][1]):
        return None
    return top[0][0]


def _raw(raw: Raw, row: "OutcomeRow") -> float | None:
    if row.raw_confidence is not None:
        raise InputError(
            "these outcomes are calibrated already; calibrate those of the strategy inside"
        )
    marks = None if row.marks is None else (row.marks.margin, row.marks.majority_share)
    return raw_of(raw, row.confidence, marks, row.scores)


def _chosen(raw: str, data: _Data) -> Raw:
    """The number to map: as named, or the first that most verdicts have.

    Raises:
        ConfigError: there is none.
    """
    for each in RAWS:
        if raw == each:
            return each
    for each in RAWS:
        there = sum(_raw(each, row) is not None for row in data.verdicts)
        if data.verdicts and there > MAJORITY * len(data.verdicts):
            return each
    raise ConfigError(
        f"none of {', '.join(RAWS)} is there in most of the {len(data.verdicts)} labelled "
        "verdicts, so there is nothing to calibrate; ask several members or samples, or let token "
        'probabilities decide (decide = "logprobs")'
    )


def _numbers(raw: Raw, data: _Data) -> tuple[list[float], list[bool]]:
    numbers: list[float] = []
    agreed: list[bool] = []
    for row, good in zip(data.verdicts, data.agreed, strict=True):
        number = _raw(raw, row)
        if number is None:
            data.left_out[f"without {raw}"] += 1
        else:
            numbers.append(number)
            agreed.append(good)
    return numbers, agreed


def _enough(path: str, numbers: list[float], agreed: list[bool], left_out: Counter[str]) -> None:
    rest = ", ".join(f"{why} {count}" for why, count in sorted(left_out.items())) or "nothing"
    if len(numbers) < FEWEST:
        raise InputError(
            f"{len(numbers)} labelled verdicts with a confidence are too few, {FEWEST} are needed "
            f"(left out: {rest})",
            file=path,
        )
    if len(set(numbers)) == 1:
        raise InputError(
            f"all {len(numbers)} labelled verdicts have the same raw confidence, {numbers[0]:g}, "
            "so it tells nothing apart; choose another with --raw",
            file=path,
        )
    if len(set(agreed)) == 1:
        word = "agrees" if agreed[0] else "disagrees"
        raise InputError(
            f"every one of {len(agreed)} labelled verdicts {word} with people, so there is nothing "
            "to tell apart; give more outcomes",
            file=path,
        )


def _lines(paths: list[str], where: str, made: Calibration, sure: Any) -> list[str]:
    left = ", ".join(f"{why} {count:,}" for why, count in made.left_out.items()) or "nothing"
    share = made.agreed / made.fitted_on
    out = [
        f"calibration of {', '.join(paths)}{' (simulated judges)' if made.simulated else ''}",
        f"  {made.method} map of {made.raw}, {made.strategy} (spec {made.spec})",
        f"  fitted on {made.fitted_on:,} labelled verdicts; left out: {left}",
        f"  {share:.1%} agree with people (95 % {sure.low:.1%} to {sure.high:.1%}, Wilson); a tie "
        "agrees with a tie only",
        f"  on verdicts not fitted on ({made.folds} folds, seed {made.seed}): calibration error "
        f"{made.before.ece:.3f} -> {made.after.ece:.3f} ({made.bins} bins), Brier "
        f"{made.before.brier:.3f} -> {made.after.brier:.3f}",
    ]
    if made.method == "platt" and made.slope < 0:
        out.append("  warning: the slope is negative: the surer a verdict, the less people agree")
    if made.method == "isotonic" and made.knots[0][1] == made.knots[-1][1]:
        out.append(f"  warning: the map is flat: {made.raw} does not tell verdicts apart")
    if made.after.brier >= made.before.brier:
        out.append("  warning: on verdicts not fitted on the map is no better than the number")
    return [*out, f"wrote {where} (hash {made.hash})"]


def _machine(where: str, made: Calibration, sure: Any) -> dict[str, Any]:
    return {
        "output": where,
        **msgspec.to_builtins(made),
        "agreement": {
            "share": round(made.agreed / made.fitted_on, 6),
            **msgspec.to_builtins(sure),
        },
        "tie_rule": "a tie agrees with a tie only",
    }
