"""`dikast weights`: labelled outcomes in, measured weights of a committee's members out.

Between two runs: the file that it writes is named by `weights` in a `[strategy]` of kind
"committee" with rule "weighted". Asks no judge.
"""

import argparse
from typing import TYPE_CHECKING

import msgspec

from dikast import status
from dikast.commands.reporting import drawn
from dikast.engine.errors import InputError
from dikast.engine.files import pretty_json, write_whole
from dikast.engine.model import Winner
from dikast.extras import needs
from dikast.strategies import MeasuredMember, MeasuredWeights, measured_weights
from dikast.tables import As, Measure, Share, Table

if TYPE_CHECKING:
    from dikast.analysis.weights import BallotRow, Fit, MemberFit

_LEVEL = 0.95


async def run(args: argparse.Namespace) -> int:
    """Count, write the file, print the table."""
    with needs("analysis", "dikast weights"):
        from dikast.analysis import weights as measuring
    labels = None if args.labels is None else _labels(args.labels)
    fitter = measuring.WeightFitter()
    specs: dict[str, None] = {}
    simulated = False
    for path in args.outcomes:
        for row in _last_of_each(path).values():
            specs[row.spec] = None
            simulated = simulated or row.simulated
            label = row.label if labels is None else labels.get(row.id)
            if (wrong := fitter.add(row, label)) is not None:
                raise InputError(wrong, file=path)
    fit = fitter.fit()
    if not fit.pairs:
        raise InputError(
            f"no pair can be measured ({_reasons(fit)}); weights need outcomes of pairs with a "
            "label A or B, in the pairs themselves or in --labels FILE",
            file=" ".join(args.outcomes),
        )
    found = measured_weights(
        [_member(each) for each in fit.members],
        method=measuring.METHOD,
        pairs=fit.pairs,
        level=_LEVEL,
        simulated=simulated,
        specs=sorted(specs),
    )
    write_whole(args.output, pretty_json(found))
    report = {"output": args.output, "left_out": fit.left_out, **msgspec.to_builtins(found)}
    shape: As = "json" if args.json else "terminal"
    print(drawn(_table(found, fit), shape, report), end="")
    return status.OK


def _last_of_each(path: str) -> "dict[str, BallotRow]":
    """The outcomes of a file by pair; a later line of an id takes the place of an earlier one."""
    from dikast.analysis.rows import read_as
    from dikast.analysis.weights import BallotRow

    return {row.id: row for row in read_as(path, BallotRow)}


def _labels(path: str) -> dict[str, Winner | None]:
    from dikast.analysis.rows import read_labels
    from dikast.analysis.weights import majority_labels

    return majority_labels((row.pair_id, row.label) for row in read_labels(path))


def _member(member: "MemberFit") -> MeasuredMember:
    interval = member.interval(_LEVEL)
    return MeasuredMember(
        name=member.name,
        weight=member.weight,
        right=member.right,
        wrong=member.wrong,
        no_pick=member.no_pick,
        accuracy=None if member.accuracy is None else round(member.accuracy, 6),
        low=round(interval.low, 6),
        high=round(interval.high, 6),
    )


def _reasons(fit: "Fit") -> str:
    return ", ".join(f"{reason}: {count:,}" for reason, count in fit.left_out.items()) or "no rows"


def _table(found: MeasuredWeights, fit: "Fit") -> Table:
    rows = tuple(
        (
            each.name,
            each.right,
            each.wrong,
            each.no_pick,
            Share(each.accuracy, None if each.accuracy is None else each),
            Measure(each.weight),
        )
        for each in found.members
    )
    notes = [
        f"measured on {found.pairs:,} pairs with a label A or B; left out: "
        f"{_reasons(fit) if fit.left_out else 'none'}",
        "accuracy: right / (right + wrong), Wilson's interval at 95 %; a tie, or no verdict, is no "
        "pick and counts on neither side",
        f"weight: {found.method}",
        "judge other pairs with it: on these the committee looks better than it is",
        f"hash {found.hash[:16]}",
    ]
    silent = [each.name for each in found.members if each.weight == 0]
    if silent:
        notes.insert(
            3,
            f"not right more often than wrong, so without a vote: {', '.join(silent)}",
        )
    if len(silent) == len(found.members):
        notes.append("nobody has a vote: a committee with this file is refused; use other judges")
    title = "measured weights" + (" (simulated judges)" if found.simulated else "")
    return Table(
        title=title,
        columns=("member", "right", "wrong", "no pick", "accuracy", "weight"),
        rows=rows,
        notes=tuple(notes),
    )
