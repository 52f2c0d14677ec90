"""`dikast agree`: how far judges agree with people, with each other, and people among themselves.

The reports' first command. Reads files, hands columns to `dikast.analysis.agreement`, draws what
comes back.
"""

import argparse
import sys
from typing import TYPE_CHECKING

from dikast import status
from dikast.commands.reporting import (
    counted,
    intervals_row,
    load,
    measure,
    missing_notes,
    options_of,
    share,
    show,
)
from dikast.engine.errors import InputError
from dikast.extras import needs
from dikast.tables import P, Table

if TYPE_CHECKING:
    from dikast.analysis.agreement import Report
    from dikast.analysis.people import People

_ROWS_MAX = 60
_ANNOTATORS_MAX = 10


async def run(args: argparse.Namespace) -> int:
    """Print the report; exit status 0."""
    if not args.outcomes and not args.labels:
        raise InputError("nothing to compare; give an outcome file, or --labels FILE, or both")
    with needs("analysis", "dikast agree"):
        from dikast.analysis.agreement import agree
    ratings = load(args)
    report = agree(ratings, options_of(args))
    sys.stdout.write(show(args, report, tables(report)))
    return status.OK


def tables(report: "Report") -> list[Table]:
    """The report as people read it."""
    made: list[Table] = [_overview(report)]
    if report.with_labels:
        made += [_accuracy(report), _beyond_chance(report)]
    if report.with_votes:
        made.append(_votes(report))
    if report.people is not None:
        made += _people(report.people, report.label_rule)
    if report.between:
        made.append(_between(report))
        if any(each.test is not None for each in report.between):
            made.append(_tests(report))
    if report.among_raters:
        made.append(_among(report))
    if any(each.by_category for each in report.with_labels):
        made.append(_categories(report))
    return made


def _overview(report: "Report") -> Table:
    rows = [
        ("pairs", counted(report.pairs)),
        ("pairs with a label", counted(report.labelled)),
        ("prompts (clusters)", counted(report.clusters)),
        intervals_row(report),
        ("one label from several votes", report.label_rule),
        ("pairs without a verdict", report.missing_rule.replace("-", " ")),
    ]
    notes = (*report.notes, *missing_notes(report))
    return Table("Agreement", ("what", "value"), tuple(rows), notes)


def _accuracy(report: "Report") -> Table:
    from dikast.analysis.counting import TIE_RULES

    rows = tuple(
        (
            each.rater if rule == "three-way" else "",
            rule,
            number.n,
            each.unjudged,
            each.accuracy["three-way"].n - number.n,
            share(number),
        )
        for each in report.with_labels
        for rule, number in each.accuracy.items()
    )
    return Table(
        "Accuracy: agreement with the labels, by tie rule",
        ("judge", "tie rule", "n", "no verdict", "ties left out", "accuracy"),
        rows,
        tuple(f"{rule}: {text}" for rule, text in TIE_RULES.items()),
    )


def _beyond_chance(report: "Report") -> Table:
    rows = tuple(
        (
            each.rater,
            each.kappa.n,
            measure(each.kappa),
            measure(each.gwet_ac1),
            each.macro_precision.value,
            each.macro_recall.value,
            measure(each.macro_f1),
            "-" if each.detectable is None else f"{each.detectable:.1%}",
        )
        for each in report.with_labels
    )
    return Table(
        "Agreement with the labels beyond chance (A, tie, B)",
        ("judge", "n", "kappa", "Gwet AC1", "precision", "recall", "macro F1", "detectable"),
        rows,
        (
            "precision, recall and F1 are unweighted means over the classes A, tie and B",
            "detectable: the smallest rise of three-way accuracy that n pairs can show (power 0.8, "
            "widened for clusters)",
        ),
    )


def _votes(report: "Report") -> Table:
    rows = tuple(
        (
            each.rater,
            each.agreement.n,
            share(each.agreement),
            measure(each.kappa),
            each.agreement_no_ties.n,
            share(each.agreement_no_ties),
            measure(each.kappa_no_ties),
        )
        for each in report.with_votes
    )
    return Table(
        "Judges against every single vote of people",
        ("judge", "votes", "agreement", "kappa", "no ties", "agreement", "kappa"),
        rows,
        ("no ties: only votes where neither the person nor the judge says tie",),
    )


def _people(people: "People", rule: str) -> list[Table]:
    coefficients = tuple(
        (name.replace("_", " "), "pairs with two votes", number.n, measure(number))
        for name, number in people.coefficients.items()
    )
    first = Table(
        "People among themselves: the ceiling",
        ("measure", "counted", "n", "value"),
        (
            ("agreement", "two votes on a pair", people.comparisons.n, share(people.comparisons)),
            ("kappa", "two votes on a pair", people.kappa.n, measure(people.kappa)),
            (
                "agreement",
                "neither is a tie",
                people.comparisons_no_ties.n,
                share(people.comparisons_no_ties),
            ),
            ("kappa", "neither is a tie", people.kappa_no_ties.n, measure(people.kappa_no_ties)),
            *coefficients,
        ),
        (
            f"{people.votes:,} votes of {people.annotators:,} annotators on {people.pairs:,} pairs;"
            f" {people.pairs_with_two_votes:,} pairs have two votes or more",
            f"{people.no_majority:,} pairs have votes but no label by the rule of {rule}",
        ),
    )
    if not people.annotator_pairs:
        return [first]
    second = Table(
        "Two annotators at a time",
        ("first", "second", "n", "agreement", "kappa"),
        tuple(
            (each.first, each.second, each.agreement.n, share(each.agreement), measure(each.kappa))
            for each in people.annotator_pairs[:_ANNOTATORS_MAX]
        ),
        (
            "those with at least 10 shared pairs, the most shared first; here at most 10, in "
            "--json at most 45",
        ),
    )
    return [first, second]


def _between(report: "Report") -> Table:
    rows = tuple(
        (each.first, each.second, each.agreement.n, share(each.agreement), measure(each.kappa))
        for each in report.between[:_ROWS_MAX]
    )
    return Table(
        "Between judges, on identical pairs",
        ("first", "second", "n", "agreement", "kappa"),
        rows,
        ("pairs where either has no verdict are left out", *_cut(len(report.between))),
    )


def _tests(report: "Report") -> Table:
    rows = tuple(
        (
            each.first,
            each.second,
            0 if each.difference is None else each.difference.n,
            each.test.b,
            each.test.c,
            share(each.difference, signed=True),
            P(each.test.exact_p),
            P(each.test.mid_p),
            P(each.holm_p),
            "-" if each.detectable is None else f"{each.detectable:.1%}",
            each.needed,
        )
        for each in report.between[:_ROWS_MAX]
        if each.test is not None
    )
    return Table(
        f"Which judge agrees more with the labels (tie rule {report.tie_rule})",
        (
            *("first", "second", "n", "only first", "only second", "difference"),
            *("exact p", "mid-p", "Holm", "detectable", "needed"),
        ),
        rows,
        (
            "McNemar on identical labelled pairs; only first: pairs that the first alone gets "
            "right; Holm: mid-p adjusted for all rows",
            "detectable: the smallest difference that n pairs can show; needed: pairs that would "
            "show the difference seen (power 0.8, widened for clusters)",
            *_cut(len(report.between)),
        ),
    )


def _among(report: "Report") -> Table:
    return Table(
        "All judges together",
        ("measure", "n", "value"),
        tuple(
            (name.replace("_", " "), number.n, measure(number))
            for name, number in report.among_raters.items()
        ),
        ("on pairs with at least two verdicts",),
    )


def _categories(report: "Report") -> Table:
    rows = tuple(
        (name, each.rater, number.n, share(number))
        for each in report.with_labels
        for name, number in each.by_category.items()
    )
    return Table(
        "Accuracy by category (tie rule three-way)",
        ("category", "judge", "n", "accuracy"),
        rows[:_ROWS_MAX],
        _cut(len(rows)),
    )


def _cut(rows: int) -> tuple[str, ...]:
    if rows <= _ROWS_MAX:
        return ()
    return (f"{rows - _ROWS_MAX:,} further rows are not shown here; --json has all",)
