"""`dikast audit report`: labels against verdicts, totals corrected, a gate.

Reads files, hands columns to `dikast.analysis.audit`, draws what comes back.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dikast import status
from dikast.commands.reporting import counted, measure, options_of, share, show
from dikast.engine.errors import InputError
from dikast.extras import needs
from dikast.tables import Cell, Measure, Share, Table

if TYPE_CHECKING:
    from dikast.analysis.audit import Report

_ROWS_SHOWN = 40


async def run(args: argparse.Namespace) -> int:
    """Print the report; exit status 4 where agreement is below the bar."""
    with needs("analysis", "dikast audit report"):
        from dikast.analysis.audit import read_audit, report
    ranking = None if args.ranking is None else _ranking(args.ranking)
    audit = read_audit(args.outcomes, args.labels, args.cluster)
    made = report(
        audit,
        options_of(args),
        min_agreement=args.min_agreement,
        ranking=ranking,
        judges=args.judge_model,
    )
    sys.stdout.write(show(args, made, tables(made)))
    if made.passed is False:
        value = made.agreement[made.tie_rule].value
        said = "is not known" if value is None else f"{value:.1%} is"
        print(
            f"dikast: agreement with people {said} below --min-agreement {args.min_agreement:.1%}",
            file=sys.stderr,
        )
        return status.GATE
    return status.OK


def tables(report: "Report") -> list[Table]:
    """The report as people read it."""
    made = [_overview(report), _agreement(report), _corrected(report), _checks(report)]
    if report.strata:
        made.insert(2, _strata(report))
    made.append(_annotators(report))
    if report.people is not None:
        made.append(_people(report))
    return made


def _overview(report: "Report") -> Table:
    low, high = report.probability_low, report.probability_high
    rows: list[tuple[Cell, ...]] = [
        ("pairs with a verdict", counted(report.pairs)),
        ("labelled by people", counted(report.labelled)),
        ("votes", counted(report.votes)),
        ("drawn and without a label", counted(report.unlabelled)),
        ("skipped by an annotator", counted(report.skipped)),
        ("chance to be drawn", f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"),
        ("effective number of labels", f"{report.effective_n:.1f}"),
        ("one label from several votes", report.label_rule),
        ("intervals", f"{report.level:.0%}, robust to pairs of one prompt; bootstrap: "
                      f"{report.draws:,} draws, seed {report.seed}"),
    ]  # fmt: skip
    if report.min_agreement is not None:
        said = "passed" if report.passed else "FAILED"
        rows.append((f"gate: agreement at least {report.min_agreement:.1%}", said))
    notes = [f"no verdict: {why}: {number:,}" for why, number in report.missing.items()]
    return Table(f"Audit of {report.run}", ("what", "value"), tuple(rows), (*notes, *report.notes))


def _agreement(report: "Report") -> Table:
    from dikast.analysis.counting import TIE_RULES

    rows: list[tuple[Cell, ...]] = [
        (f"agreement, {rule}", number.n, share(number)) for rule, number in report.agreement.items()
    ]
    rows += [
        ("kappa", report.kappa.n, measure(report.kappa)),
        ("Gwet AC1", report.gwet_ac1.n, measure(report.gwet_ac1)),
        (
            "Krippendorff alpha",
            report.krippendorff_alpha.n,
            measure(report.krippendorff_alpha),
        ),
    ]
    return Table(
        "Agreement of the judge with people, for all pairs with a verdict",
        ("measure", "n", "value"),
        tuple(rows),
        (
            "each labelled pair weighs one over its chance to be drawn and answered; drawn pairs "
            "without a label are taken to be like the others of their stratum",
            *(f"{rule}: {text}" for rule, text in TIE_RULES.items()),
        ),
    )


def _strata(report: "Report") -> Table:
    further = len(report.strata) - _ROWS_SHOWN
    rows = tuple(
        (each.name, each.pairs, each.drawn, each.labelled, share(each.agreement))
        for each in report.strata[:_ROWS_SHOWN]
    )
    return Table(
        f"By stratum (tie rule {report.tie_rule})",
        ("stratum", "pairs", "drawn", "labelled", "agreement"),
        rows,
        (f"{further:,} further strata are not shown; --json has all",) if further > 0 else (),
    )


def _corrected(report: "Report") -> Table:
    rows: list[tuple[Cell, ...]] = []
    named = [("accuracy, three-way", report.accuracy)]
    rates = report.win_rates
    named += [(f"win rate of {each.name}", each.rate) for each in rates[:_ROWS_SHOWN]]
    further = len(rates) - _ROWS_SHOWN
    notes = [f"{further:,} further models are not shown; --json has all"] if further > 0 else []
    for number, (name, rate) in enumerate(named):
        judge = None if number == 0 else Share(rate.predicted, rate.predicted_interval)
        rows.append(
            (
                name,
                rate.pairs,
                rate.labelled,
                judge,
                Share(rate.labels_only, rate.labels_only_interval),
                Share(rate.value, rate.interval),
                Measure(rate.power, None, 2),
            )
        )
        if rate.why:
            notes.append(f"{name}: {rate.why}")
    passes = report.pass_rate
    rows.append(
        (
            "response_a wins (Rogan-Gladen)",
            passes.pairs,
            passes.labelled,
            Share(passes.apparent),
            None,
            Share(passes.value, passes.interval),
            None,
        )
    )
    if passes.why:
        notes.append(f"Rogan-Gladen: {passes.why}")
    elif passes.sensitivity is not None and passes.specificity is not None:
        notes.append(
            f"Rogan-Gladen: sensitivity {passes.sensitivity:.1%}, specificity "
            f"{passes.specificity:.1%}; a tie is no win"
        )
    return Table(
        "Totals, corrected by people's labels",
        ("what", "pairs", "labelled", "judge says", "labels alone", "corrected", "lambda"),
        tuple(rows),
        (
            "corrected: prediction-powered, the judge on all pairs moved by how far people differ "
            "from it on the sample; lambda: the weight that the judge was given",
            "win rates: a tie counts half; accuracy is predicted by the judge's confidence",
            *notes,
        ),
    )


def _checks(report: "Report") -> Table:
    return Table(
        "Is the judge able enough?",
        ("question", "answer", "why"),
        tuple((each.question, each.result, each.why) for each in report.checks),
        ("not shown: the interval reaches across the line; more labels would tell",),
    )


def _annotators(report: "Report") -> Table:
    rows = tuple(
        (
            each.name,
            each.decided,
            each.ties,
            each.skipped,
            each.self_agreement.n,
            share(each.self_agreement),
            share(each.left),
            None if each.median_duration_s is None else Measure(each.median_duration_s, None, 1),
        )
        for each in report.annotators
    )
    return Table(
        "Annotators",
        (
            *("annotator", "decided", "ties", "skipped"),
            *("shown twice", "agrees with itself", "chose left", "median s"),
        ),
        rows,
        (
            "shown twice: items that were decided twice, the second time with the sides exchanged",
            "chose left: of decisions that are no tie; near 50 % where sides do not matter",
        ),
    )


def _people(report: "Report") -> Table:
    people = report.people
    assert people is not None
    rows: list[tuple[Cell, ...]] = [
        ("agreement", people.comparisons.n, share(people.comparisons)),
        ("kappa", people.kappa.n, measure(people.kappa)),
    ]
    rows += [
        (name.replace("_", " "), number.n, measure(number))
        for name, number in people.coefficients.items()
    ]
    return Table(
        "People among themselves",
        ("measure", "n", "value"),
        tuple(rows),
        (
            f"not weighted; {people.pairs_with_two_votes:,} pairs have two votes or more, "
            f"{people.no_majority:,} no label by the rule of {report.label_rule}",
        ),
    )


class _RankedModel(msgspec.Struct):
    model: str
    rating: float
    interval: Any = None


class _Ranking(msgspec.Struct):
    models: list[_RankedModel]


def _ranking(path: str) -> dict[str, tuple[float, float, float]]:
    """Rating, low and high of every model, from the JSON of `dikast rank`."""
    try:
        found = msgspec.json.decode(Path(path).read_bytes(), type=_Ranking)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    except msgspec.DecodeError as error:
        raise InputError(f"is no JSON of dikast rank ({error})", file=path) from error
    result: dict[str, tuple[float, float, float]] = {}
    for each in found.models:
        bounds = each.interval if isinstance(each.interval, dict) else {}
        low, high = bounds.get("low", each.rating), bounds.get("high", each.rating)
        result[each.model] = (each.rating, float(low), float(high))
    return result
