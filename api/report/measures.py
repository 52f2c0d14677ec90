"""Sections of a report that measure: biases, calibration, scores, SESSE, preferences.

From the records of `dikast.report.data` to `Section`s, for `dikast.report.sections`.
"""

from collections.abc import Iterator

from dikast.analysis.bias_report import BiasReport
from dikast.analysis.counting import Number
from dikast.analysis.ratings import Ratings
from dikast.analysis.report_parts import Rate
from dikast.commands import bias as bias_tables
from dikast.commands.reporting import measure, share
from dikast.report.data import ReportData
from dikast.report.figures import (
    FIGURES_MAX,
    Axis,
    Dot,
    Reliable,
    histogram,
    intervals,
    reliability,
)
from dikast.report.page import Section
from dikast.tables import Share, Table

_BARS_MAX = 60


def dot_of(label: str, number: Number) -> Dot:
    """A number of an analysis as a dot of a figure."""
    return Dot(label, number.value, number.interval, number.n)


# -- biases -----------------------------------------------------------------------------------


def biases(data: ReportData) -> Section:
    """Every bias as a picture with its interval, and the tables of `dikast bias`."""
    found = data.bias
    if found is None:
        return Section("bias", "Biases", absent=data.absent.get("bias", "nothing was judged"))
    figures = [*_position_figures(found), *_text_figures(found), *_other_figures(found)]
    tables = [each for each in bias_tables.tables(found) if not each.title.startswith("Scores")]
    return Section(
        *("bias", "Biases", ("What the files let one see; what they do not is listed below.",)),
        tuple(each for each in figures if each),
        tuple(tables),
    )


def _position_figures(found: BiasReport) -> Iterator[str]:
    yield intervals(
        "Position: bias to the answer shown first",
        [dot_of(each.judge, each.bias) for each in found.position],
        Axis("signed share", "P(answer shown first wins) - 50 %; 0 is none", 0.0),
    )
    yield intervals(
        "Position: the same verdict in both orders",
        [
            dot_of(f"{each.judge}, {name}", number)
            for each in found.position
            for name, number in (("strict", each.strict), ("lenient", each.lenient))
        ],
        Axis("share", "share of the pairs asked in both orders", 1.0),
    )


def _text_figures(found: BiasReport) -> Iterator[str]:
    yield intervals(
        "Length: odds of winning for an answer twice as long",
        [
            dot_of(f"{each.judge}{name}", number)
            for each in found.text
            for name, number in (
                ("", each.length),
                (", given the label", each.length_given_label),
                (": people's own", each.people_length),
            )
        ],
        Axis("log", "odds ratio; 1 is none", 1.0, 2),
    )
    yield intervals(
        "Format: odds of winning for the answer with more, in one model",
        [
            dot_of(f"{each.judge}: {effect.feature}", effect.odds_ratio)
            for each in found.text
            for effect in each.joint
        ],
        Axis("log", "odds ratio; 1 is none", 1.0, 2),
    )


def _other_figures(found: BiasReport) -> Iterator[str]:
    yield intervals(
        "Own family: excess over the reference",
        [dot_of(f"{each.judge} ({each.family})", each.excess) for each in found.own_family],
        Axis("signed share", "result of own answers, judge minus reference; 0 is none", 0.0),
    )
    yield intervals(
        "Scores: share of the commonest score",
        [dot_of(f"{each.run}: {each.dimension}", each.modal_share) for each in found.scores],
        Axis("share", "1 is full collapse"),
    )
    yield intervals(
        "Noise: share of a verdict's variance that is the judge's own",
        [dot_of(each.judge, each.noise_share) for each in found.noise],
        Axis("share", "0 is none", 0.0),
    )
    yield intervals(
        "Injection: verdicts turned by planted text",
        [
            Dot(each.family, each.flipped / each.n if each.n else None, each.interval, each.n)
            for each in found.injection
        ],
        Axis("share", "0 is none", 0.0),
    )


# -- calibration ------------------------------------------------------------------------------


def calibration(data: ReportData) -> Section:
    """Reliability curves."""
    if not data.calibration:
        return Section("calibration", "Calibration", absent=data.absent.get("calibration"))
    figures = tuple(
        reliability(
            f"{each.run}: confidence against agreement, n {each.n:,}",
            [
                Reliable(one.confidence, one.agreed.value or 0.0, one.agreed.interval, one.agreed.n)
                for one in each.bins
            ],
            each.number.replace("_", " ") + (" (calibrated)" if each.calibrated else ""),
        )
        for each in data.calibration[:FIGURES_MAX]
    )
    whole = Table(
        "Calibration",
        ("run", "confidence is", "n", "agree with people", "calibration error", "Brier score"),
        tuple(
            (
                each.run,
                each.number.replace("_", " ") + (" (calibrated)" if each.calibrated else ""),
                each.n,
                share(each.agreed),
                each.ece,
                measure(each.brier),
            )
            for each in data.calibration
        ),
        (
            "verdicts with a label and a confidence; a tie agrees with a tie only; 0 is best for "
            "both measures",
            "margin and majority share are agreement between votes, not chances of being right; "
            "dikast calibrate maps them",
            "calibration error: mean over ten bins of |confidence - share that agrees|; few "
            "verdicts in a bin make it larger than it is, so it has no interval",
            *(
                f"{each.run}: left out: {why}: {n:,}"
                for each in data.calibration
                for why, n in each.left_out.items()
            ),
        ),
    )
    bins = Table(
        "Calibration by bin",
        ("run", "confidence", "n", "mean confidence", "agree with people"),
        tuple(
            (
                each.run,
                f"{one.low:.1f} to {one.high:.1f}",
                one.agreed.n,
                Share(one.confidence),
                share(one.agreed),
            )
            for each in data.calibration
            for one in each.bins
        ),
    )
    return Section("calibration", "Calibration", (), figures, (whole, bins))


# -- scores, SESSE, preferences ---------------------------------------------------------------


def scores(data: ReportData, ratings: Ratings) -> Section | None:
    """Histograms; None without scores."""
    if data.bias is None or not data.bias.scores:
        return None
    figures: list[str] = []
    for run in ratings.runs:
        for dimension, counts in sorted(run.scores.items()):
            bars = sorted(counts.items())
            if len(bars) <= _BARS_MAX and len(figures) < FIGURES_MAX:
                name = f"{run.name}: {dimension}, n {counts.total():,}"
                figures.append(histogram(name, [(f"{at:g}", n) for at, n in bars], "score"))
    tables = [each for each in bias_tables.tables(data.bias) if each.title.startswith("Scores")]
    return Section("scores", "Scores", (), tuple(figures), tuple(tables))


def _rate(rate: Rate) -> Share:
    return Share(rate.share, rate.interval)


def _rate_dot(label: str, rate: Rate) -> Dot:
    return Dot(label, rate.share, rate.interval, rate.n)


def sesse(data: ReportData) -> Section | None:
    """Clusters of questions; None where no outcome is of SESSE."""
    if not data.sesse:
        return None
    figures: list[str] = []
    tables: list[Table] = []
    for run, found in data.sesse.items():
        figures += [
            intervals(
                f"{run}: clusters of questions, share of the pairs that select them",
                [_rate_dot(each.cluster, each.rows) for each in found.clusters],
                Axis("share", "share of pairs"),
            ),
            intervals(
                f"{run}: votes of a cluster that say what the label says",
                [_rate_dot(each.cluster, each.right) for each in found.clusters],
                Axis("share", "share of its A and B votes on pairs labelled A or B", 0.5),
            ),
        ]
        tables.append(
            Table(
                f"{run}: clusters of questions",
                (
                    *("cluster", "pairs", "selected by", "A and B votes", "does not apply"),
                    *("unread", "n", "right"),
                ),
                tuple(
                    (
                        *(each.cluster, each.rows.hits, _rate(each.rows), each.votes),
                        *(_rate(each.na), _rate(each.unread), each.right.n, _rate(each.right)),
                    )
                    for each in found.clusters
                ),
                (
                    f"{found.rows:,} pairs; libraries {', '.join(found.libraries)}; nothing "
                    f"selected: {found.nothing_selected.hits:,}; votes: does not apply "
                    f"{found.na.hits:,}, unread {found.unread.hits:,} of {found.na.n:,}; answers "
                    f"that depend on the order: {found.position_conflicts:,}",
                    "ties by kind: "
                    + (", ".join(f"{why} {n:,}" for why, n in found.ties.items()) or "none"),
                    "Wilson intervals over pairs, and over votes as if independent, so too narrow",
                ),
            )
        )  # fmt: skip
    return Section(
        "sesse", "SESSE questions", (), tuple(each for each in figures if each), tuple(tables)
    )


def preferences(data: ReportData) -> Section | None:
    """Preferences of a person; None where no outcome is of them."""
    if not data.preferences:
        return None
    figures: list[str] = []
    tables: list[Table] = []
    for run, found in data.preferences.items():
        figures.append(
            intervals(
                f"{run}: preferences whose two orders agree",
                [_rate_dot(each.preference, each.consistent) for each in found.preferences],
                Axis("share", "share of the pairs asked"),
            )
        )
        tables.append(
            Table(
                f"{run}: preferences",
                ("preference", "asked", "orders agree", "n", "as the verdict", "n", "as the label"),
                tuple(
                    (
                        *(each.preference, each.consistent.n, _rate(each.consistent)),
                        *(each.with_verdict.n, _rate(each.with_verdict)),
                        *(each.with_label.n, _rate(each.with_label)),
                    )
                    for each in found.preferences
                ),
                (
                    f"{found.rows:,} pairs; both orders chose alike on "
                    f"{found.consistent.hits:,} of {found.consistent.n:,} where that is known; "
                    f"abstained: {found.abstained.hits:,}",
                    "a preference whose orders differ says nothing; Wilson intervals over pairs",
                ),
            )
        )
    return Section(
        "preferences", "Preferences", (), tuple(each for each in figures if each), tuple(tables)
    )
