"""The report of `dikast sesse evaluate` as tables for people; every one says what it counts."""

from typing import TYPE_CHECKING

from dikast.tables import Cell, Measure, P, Share, Table

if TYPE_CHECKING:
    from dikast.analysis.sesse_accuracy import Headline, Rate
    from dikast.analysis.sesse_compare import Difference
    from dikast.analysis.sesse_report import Report

_ROWS_SHOWN = 15
_ID_SHOWN = 12
INVALID_MAX = 0.01
"""Share of invalid votes above which the report warns."""


def tables(report: "Report") -> list[Table]:
    """Every table that has something to say."""
    found = [_headline(report), _selective(report)]
    if any(each.subset for each in report.subsets):
        found.append(_subsets(report))
    if report.leaderboard is not None:
        found.append(_sections(report))
    if report.depth:
        found.append(_depth(report))
    if len(report.steps) > 1:
        found.append(_steps(report))
    found += [_rates(report), _health(report), _taxonomy(report)]
    if report.suspects:
        found.append(_suspects(report))
    if report.transfer:
        found.append(_transfer(report))
    if report.batch is not None:
        found.append(_batch(report))
    return found


def _rate(rate: "Rate | None") -> Cell:
    return Share(None) if rate is None else Share(rate.value, rate.interval)


def _of(rate: "Rate") -> str:
    hits = f"{rate.hits:,.1f}" if rate.hits % 1 else f"{rate.hits:,.0f}"
    return f"{hits} of {rate.n:,}"


def _difference(found: "Difference") -> Cell:
    return Share(found.value, found.interval, signed=True)


def _headline(report: "Report") -> Table:
    figures, source = report.headline, report.source
    test = figures.test
    reasons = ", ".join(f"{count:,} {why}" for why, count in figures.tie_reasons.items())
    left_out = ", ".join(f"{count:,} {why}" for why, count in source.left_out.items()) or "none"
    rows: list[tuple[Cell, ...]] = [
        ("SESSE, right of the decided", _rate(figures.sesse), _of(figures.sesse)),
        ("holistic, on the same rows", _rate(figures.holistic_same), _of(figures.holistic_same)),
        ("holistic, on all rows", _rate(figures.holistic_all), _of(figures.holistic_all)),
        ("holistic, where SESSE ties", _rate(figures.holistic_ties), _of(figures.holistic_ties)),
        ("difference on the same rows", Share(figures.difference, signed=True), ""),
        ("relative gap", Share(figures.relative_gap, signed=True), ""),
        ("ties", Share(figures.tie_share), f"{figures.ties:,} of {figures.rows:,}"),
    ]
    if test is not None:
        rows += [
            ("only the holistic verdict right (b)", test.b, f"of {figures.paired:,}"),
            ("only SESSE right (c)", test.c, f"of {figures.paired:,}"),
            ("McNemar, exact p", P(test.exact_p), ""),
            ("McNemar, mid-p", P(test.mid_p), ""),
            ("McNemar, chi-square p", P(test.chi2_p), ""),
            ("McNemar, with continuity p", P(test.chi2_cc_p), ""),
        ]
    notes = [
        f"library {source.library}, judge {source.judge}, depth {source.depth}"
        + (" (SIMULATED judge)" if source.simulated else ""),
        f"{figures.rows:,} labelled rows; left out: {left_out}; no verdict: {figures.no_verdict:,}",
        "95 % Wilson intervals; ties are left out of the decided and counted apart"
        + (f": {reasons}" if reasons else ""),
    ]
    if source.calls_per_row is not None:
        notes.append(f"{source.calls_per_row:.1f} calls a row")
    if source.cached_share is not None:
        notes.append(
            f"{source.cached_share:.1%} of the votes' input tokens came from the prefix cache"
        )
    return Table(
        title="SESSE and the holistic verdict",
        columns=("figure", "value", "rows"),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _selective(report: "Report") -> Table:
    figures = report.headline
    curve = report.risk_coverage
    coverage = None if figures.tie_share is None else 1 - figures.tie_share
    return Table(
        title="all rows counted: what the ties cost",
        columns=("figure", "value", "rows"),
        rows=(
            ("coverage", Share(coverage), f"{figures.rows - figures.ties:,} of {figures.rows:,}"),
            ("a tie counts one half", _rate(figures.half), _of(figures.half)),
            (
                "a tie falls back on the holistic verdict",
                _rate(figures.fall_back),
                "" if figures.fall_back is None else _of(figures.fall_back),
            ),
            (
                "a tie is escalated, at best",
                _rate(figures.escalate_best),
                _of(figures.escalate_best),
            ),
            ("area under risk and coverage (AURC)", Measure(curve.aurc, digits=4), ""),
        ),
        notes=(
            f"over all {figures.rows:,} rows; no verdict counts as wrong",
            "escalated at best: every tie answered rightly by whoever it is sent to",
            "AURC: mean risk over all coverages by margin, 0 at best; ties stand last, risk 0.5",
        ),
    )


def _subsets(report: "Report") -> Table:
    def line(name: str, figures: "Headline", holm: float | None) -> tuple[Cell, ...]:
        test = figures.test
        return (
            name or "(none)",
            figures.rows,
            figures.ties,
            _rate(figures.sesse),
            Share(figures.half.value),
            Share(figures.holistic_same.value),
            Share(figures.holistic_all.value),
            Share(figures.difference, signed=True),
            Share(figures.relative_gap, signed=True),
            "-" if test is None else f"{test.b}/{test.c}",
            P(None if test is None else test.exact_p),
            P(holm),
        )

    return Table(
        title="by category",
        columns=(
            *("category", "rows", "ties", "SESSE", "ties 0.5", "holistic", "holistic all"),
            *("difference", "relative", "b/c", "p", "Holm p"),
        ),
        rows=tuple(line(each.subset, each.figures, each.holm_p) for each in report.subsets),
        notes=(
            "SESSE and holistic: right of the rows that SESSE decides, 95 % Wilson interval",
            "b, c: only holistic right, only SESSE right; p: exact McNemar; Holm over categories",
        ),
    )


def _sections(report: "Report") -> Table:
    found = report.leaderboard
    assert found is not None
    rows: list[tuple[Cell, ...]] = [
        (each.name, each.rows, Share(each.sesse), Share(each.holistic)) for each in found.sections
    ]
    rows.append(("leaderboard", report.headline.rows, Share(found.sesse), Share(found.holistic)))
    missing = f"; absent: {', '.join(found.missing)}" if found.missing else ""
    return Table(
        title="RewardBench sections",
        columns=("section", "rows", "SESSE", "holistic"),
        rows=tuple(rows),
        notes=(
            "ties count one half; a section is the mean of its subsets weighted by their rows, "
            "math-prm weighs as much as the hep-* subsets together",
            (
                "the whole filtered set, all sizes as published"
                if found.whole
                else f"a part of the set: sizes are those of these rows{missing}"
            ),
        ),
    )


def _depth(report: "Report") -> Table:
    return Table(
        title="depth, by replay without calls",
        columns=(
            *("depth", "SESSE", "ties 0.5", "ties", "NA", "questions", "A and B votes"),
            "against the chosen",
        ),
        rows=tuple(
            (
                f"{each.depth} *" if each.depth == report.depth_chosen else str(each.depth),
                _rate(each.accuracy),
                Share(each.half.value),
                Share(each.tie_share),
                Share(each.na_rate),
                Measure(each.questions, digits=1),
                Measure(each.effective, digits=1),
                _difference(each.delta),
            )
            for each in report.depth
        ),
        notes=(
            "*: the depth of the run; against the chosen: paired, ties one half, 95 % normal",
            "compare ties of judges at equal numbers of A and B votes: an even number makes more",
        ),
    )


def _steps(report: "Report") -> Table:
    return Table(
        title="step by step: what each brought and cost",
        columns=("step", "reached by", "right of decided", "ties", "no verdict", "calls", "USD"),
        rows=tuple(
            (
                each.name,
                each.reached,
                _rate(each.right),
                each.ties,
                each.no_verdict,
                Measure(each.calls_mean, digits=1),
                f"{each.cost_usd:.4f}",
            )
            for each in report.steps
        ),
        notes=(
            "reached by: labelled pairs that no earlier step decided (in hybrid mode: whose margin "
            "was too narrow)",
            "deeper and swapped: the count of all votes so far; calls: the step's own, a pair",
        ),
    )


def _rates(report: "Report") -> Table:
    rows = [
        (level, each.name[:_ID_SHOWN] if level == "question" else each.name, each)
        for level in ("subset", "cluster", "question", "row")
        for each in report.rates[level][: _ROWS_SHOWN if level != "row" else 5]
    ]
    high = report.invalid_rate is not None and report.invalid_rate > INVALID_MAX
    asked = sum(each.asked for each in report.rates["subset"])
    return Table(
        title="NA and invalid votes, the highest NA first",
        columns=("of", "name", "asked", "NA", "invalid"),
        rows=tuple(
            (level, name or "(none)", each.asked, Share(each.na_rate), Share(each.invalid_rate))
            for level, name, each in rows
        ),
        notes=(
            f"{asked:,} votes, of which invalid after a second try: "
            + ("-" if report.invalid_rate is None else f"{report.invalid_rate:.2%}")
            + ("; above 1 %: the judge does not keep to the form" if high else ""),
            f"at most {_ROWS_SHOWN} of a level; all are in the JSON report",
        ),
    )


def _health(report: "Report") -> Table:
    found = report.health
    by_rows, by_votes = found.dominant_row_share, found.dominant_vote_share
    return Table(
        title="clusters",
        columns=("cluster", "selected", "of the votes", "votes right"),
        rows=tuple(
            (each.cid, Share(each.row_share), Share(each.vote_share), _rate(each.right))
            for each in found.clusters
        ),
        notes=(
            "votes right: Wilson intervals that take votes as independent, so somewhat too narrow",
            f"dominant by rows that select it: {found.dominant_by_rows or '-'}"
            + ("" if by_rows is None else f" ({by_rows:.1%} of {found.rows:,} rows)"),
            f"dominant by A and B votes: {found.dominant_by_votes or '-'}"
            + ("" if by_votes is None else f" ({by_votes:.1%} of {found.votes:,} votes)"),
        ),
    )


def _taxonomy(report: "Report") -> Table:
    found = report.taxonomy
    limits = found.thresholds
    names = {
        "C1": "C1 votes divided (ambiguous label)",
        "C2": "C2 confident and diverging (decomposition)",
        "C3": "C3 answers near each other, many NA (equivalence)",
    }
    cosine = (
        "no cosines were measured (give --pairs), so no row can be C3"
        if limits.cosine is None
        else f"C3: cosine at least {limits.cosine:.3f} and NA share at least "
        + ("-" if limits.na_share is None else f"{limits.na_share:.3f}")
    )
    return Table(
        title="where SESSE and the holistic verdict disagree",
        columns=("class", "rows", "share", "of them lost by SESSE", "without hep-*"),
        rows=tuple(
            (
                names[kind],
                found.counts[kind],
                Share(found.counts[kind] / found.disagreements if found.disagreements else None),
                found.lost[kind],
                found.without_hep[kind],
            )
            for kind in ("C1", "C2", "C3")
        ),
        notes=(
            f"{found.disagreements:,} rows that SESSE decides otherwise than the holistic verdict",
            f"{cosine}; else C1: entropy of A and B votes at least {limits.entropy_bits:.2f} bits",
            f"{found.both:,} rows satisfy C1 and C3 alike and are counted as C3; raw values are in "
            "the JSON report",
        ),
    )


def _suspects(report: "Report") -> Table:
    return Table(
        title="labels to look at again",
        columns=("id", "category", "label", "both say", "margin", "votes", "NA"),
        rows=tuple(
            (
                each.id,
                each.subset or "(none)",
                each.label,
                each.verdict,
                Measure(each.margin, digits=2),
                each.votes,
                Share(each.na_share),
            )
            for each in report.suspects[:_ROWS_SHOWN]
        ),
        notes=(
            "SESSE and the holistic verdict agree against the label; widest margin first",
            f"{len(report.suspects):,} found (at most 50), {_ROWS_SHOWN} shown; a candidate is not "
            "a proven error",
        ),
    )


def _transfer(report: "Report") -> Table:
    return Table(
        title="library by judge",
        columns=("library", "judge", "rows", "SESSE", "ties 0.5", "ties", "NA", "clusters a row"),
        rows=tuple(
            (
                each.library,
                each.judge,
                each.figures.rows,
                _rate(each.figures.sesse),
                Share(each.figures.half.value),
                Share(each.figures.tie_share),
                Share(each.na_rate),
                Measure(each.clusters_mean, digits=2),
            )
            for each in report.transfer
        ),
        notes=("each run on the rows of its own file; compare only what was run on the same rows",),
    )


def _batch(report: "Report") -> Table:
    found = report.batch
    assert found is not None
    return Table(
        title="agreement with one question a call",
        columns=("figure", "value"),
        rows=(
            ("votes alike", Share(found.alike.value, found.alike.interval)),
            ("Cohen's kappa of the votes", Measure(found.kappa.value, found.kappa.interval)),
            ("same verdict", _rate(found.same_verdict)),
            ("score, this minus reference", _difference(found.score_delta)),
            ("ties, this minus reference", _difference(found.tie_delta)),
        ),
        notes=(
            f"{found.votes:,} votes on {found.pairs:,} pairs that both runs have; A, B, NA and "
            "invalid are four answers; intervals of votes resample pairs",
        ),
    )
