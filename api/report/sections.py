"""The sections of a report: which figures and tables stand where, and what is said above them.

From the records of `dikast.report.data` to `Section`s. Tables are those of `dikast agree`, `bias`
and `rank`, so that a number is the same wherever it is printed.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from dikast.analysis.counting import TIE_RULES
from dikast.analysis.ratings import Ratings
from dikast.analysis.report_summary import KINDS
from dikast.commands import agree as agree_tables
from dikast.commands import rank_tables
from dikast.commands.reporting import share
from dikast.report.data import ReportData, Source
from dikast.report.figures import FIGURES_MAX, Axis, Dot, Piece, confusion, intervals, shares
from dikast.report.measures import biases, calibration, dot_of, preferences, scores, sesse
from dikast.report.page import Section
from dikast.tables import Cell, Measure, Table

_PIECES = (("A", "a"), ("tie", "tie"), ("B", "b"), ("no verdict", "none"))


def sections_of(data: ReportData, ratings: Ratings) -> tuple[Section, ...]:
    """All sections, in the order of the page."""
    found = [
        _ledger(data),
        _verdicts(data),
        _ranking(data),
        _agreement(data),
        biases(data),
        calibration(data),
        scores(data, ratings),
        sesse(data),
        preferences(data),
        _contested(data),
        _method(data),
    ]
    return tuple(each for each in found if each is not None)


# -- ledger -----------------------------------------------------------------------------------


def _ledger(data: ReportData) -> Section:
    rows: list[tuple[Cell, ...]] = []
    costs: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for source in data.sources:
        if source.manifest is None:
            notes.append(
                f"{source.name}: no manifest lies beside it, so what its runs read and paid is not "
                "known"
            )
            continue
        for run in source.manifest.runs:
            ledger = run.ledger
            name = f"{source.name}{' (simulated)' if run.simulated else ''}"
            if ledger is None:
                rows.append((name, run.started, run.status, *([None] * 6)))
                notes.append(
                    f"{source.name}: the run of {run.started} has no ledger: it is still running, "
                    "or was killed"
                )
                continue
            rows.append(
                (
                    *(name, run.started, run.status, ledger.input, ledger.judged),
                    *(ledger.undecided_total, ledger.failed_total, ledger.skipped, ledger.not_run),
                )
            )
            costs.append(
                (
                    *(name, run.started, ledger.calls, ledger.stored_calls),
                    *(ledger.usage.input, ledger.usage.output),
                    *(Measure(ledger.spent_usd, None, 4), Measure(run.duration_s, None, 1)),
                )
            )
            if run.stop_reason or run.message:
                notes.append(f"{source.name}: {run.status}: {run.message or run.stop_reason}")
            if not ledger.adds_up():
                notes.append(f"{source.name}: the ledger of {run.started} does not add up")
    table = Table(
        "Ledger of every run, from the manifests",
        (
            *("run", "started", "status", "input", "judged", "undecided", "failed", "skipped"),
            "not run",
        ),
        tuple(rows),
        (
            "input = judged + undecided + failed + skipped (done by an earlier run) + not run",
            *notes,
        ),
    )
    paid = Table(
        "Cost of every run",
        (
            *("run", "started", "calls", "from store", "tokens in", "tokens out", "spent, USD"),
            "seconds",
        ),
        tuple(costs),
        ("from store: calls that had been paid before; spent: what the run itself paid",),
    )
    tables = (table, paid, _outcomes(data)) if rows else (_outcomes(data),)
    absent = None if rows else f"no ledger: {'; '.join(notes)}"
    return Section("ledger", "Ledger and cost", (), (), tables, absent)


def _outcomes(data: ReportData) -> Table:
    """What the outcome files themselves say."""
    return Table(
        "Outcomes in the files",
        ("run", "outcomes", "judge calls", "price of these calls, USD", "lines repeated"),
        tuple(
            (
                *(each.run, each.outcomes, each.calls),
                *(Measure(each.cost_usd, None, 4), each.repeated_lines),
            )
            for each in data.verdicts
        ),
        (
            "judge calls: all behind the outcomes, whenever they were bought; a repeated line of a "
            "pair counts only where the earlier one failed",
        ),
    )


# -- verdicts ---------------------------------------------------------------------------------


def _verdicts(data: ReportData) -> Section:
    bars: list[tuple[str, list[Piece]]] = []
    for each in data.verdicts:
        counts = (
            *(round((number.value or 0.0) * number.n) for number in (each.a, each.tie, each.b)),
            sum(each.no_verdict.values()),
        )
        bars.append(
            (
                each.run,
                [
                    Piece(name, n, cast(Any, kind))
                    for (name, kind), n in zip(_PIECES, counts, strict=True)
                ],
            )
        )
    table = Table(
        "Verdicts",
        ("run", "outcomes", "verdicts", "A", "tie", "B", "scored", "no verdict"),
        tuple(
            (
                *(each.run, each.outcomes, each.verdicts),
                *(share(each.a), share(each.tie), share(each.b)),
                *(each.scored, sum(each.no_verdict.values())),
            )
            for each in data.verdicts
        ),
        (
            "shares are of the verdicts; outcomes without one are left out of them and are no "
            "ties; intervals by prompt",
            *(
                f"{each.run}: no verdict: {why}: {n:,}"
                for each in data.verdicts
                for why, n in each.no_verdict.items()
            ),
            *(
                f"{each.run}: verdicts by basis: "
                + ", ".join(f"{name} {n:,}" for name, n in each.bases.items())
                for each in data.verdicts
                if each.bases
            ),
        ),
    )
    figure = shares("What the verdicts say", bars)
    return Section(
        *("verdicts", "Verdicts", (), (figure,) if figure else ()),
        (table,) if data.pairs else (),
        data.absent.get("verdicts"),
    )


# -- ranking ----------------------------------------------------------------------------------


def _ranking(data: ReportData) -> Section:
    found = data.ranking
    if found is None:
        return Section("ranking", "Leaderboard", absent=data.absent["ranking"])
    tables = rank_tables.of_ranking(found, (), matrix=1 < len(found.models) <= 12)
    ratings = intervals(
        f"Rating with {found.settings.level:.0%} interval",
        [Dot(each.model, each.rating, each.interval, each.battles) for each in found.models],
        Axis("number", "rating; 400 points are odds of 10 to 1", 1000.0),
    )
    rates = intervals(
        "Win rate, ties as half",
        [
            Dot(each.model, each.win_rate, each.win_rate_interval, each.battles)
            for each in found.models
        ],
        Axis("share", "share of points against the opponents met", 0.5),
    )
    return Section("ranking", "Leaderboard", (), (ratings, rates), tuple(tables))


# -- agreement --------------------------------------------------------------------------------


def _agreement(data: ReportData) -> Section:
    found = data.agreement
    if found is None:
        return Section("agreement", "Agreement with people", absent=data.absent.get("agreement"))
    figures: list[str] = []
    if found.with_labels:
        figures.append(
            intervals(
                "Accuracy by tie rule",
                [
                    dot_of(f"{each.rater}, {rule}" if len(found.with_labels) > 1 else rule, number)
                    for each in found.with_labels
                    for rule, number in each.accuracy.items()
                ],
                Axis("share", "share of labelled pairs that the judge gets right"),
            )
        )
        figures.append(
            intervals(
                "Agreement beyond chance",
                [
                    dot_of(f"{each.rater}, {name}" if len(found.with_labels) > 1 else name, number)
                    for each in found.with_labels
                    for name, number in (("kappa", each.kappa), ("Gwet AC1", each.gwet_ac1))
                ],
                Axis("number", "0 is chance, 1 is perfect", 0.0, 3),
            )
        )
    maps = [
        confusion(f"Confusion: {each.judge}, n {each.n:,}", each.counts)
        for each in data.confusion[:FIGURES_MAX]
    ]
    beside = f'<div class="beside">{"".join(maps)}</div>' if maps else ""
    tables = [*agree_tables.tables(found), *_confusion_table(data)]
    return Section(
        *("agreement", "Agreement with people", ()),
        tuple(each for each in (*figures, beside) if each),
        tuple(tables),
        data.absent.get("agreement"),
    )


def _confusion_table(data: ReportData) -> list[Table]:
    names = ("A", "tie", "B")
    if not data.confusion:
        return []
    return [
        Table(
            "Confusion: labels against verdicts",
            ("judge", "label", "verdict A", "verdict tie", "verdict B", "no verdict", "n"),
            tuple(
                (each.judge, name, *row, sum(row))
                for each in data.confusion
                for name, row in zip(names, each.counts, strict=True)
            ),
            ("counts of labelled pairs; agreement above leaves those without a verdict out",),
        )
    ]


# -- pairs and method -------------------------------------------------------------------------


def _contested(data: ReportData) -> Section:
    if not data.contested:
        return Section("contested", "Pairs to look at", absent=data.absent.get("contested"))
    table = Table(
        "How many pairs are of which kind",
        ("run", "kind", "what it means", "pairs", "shown here"),
        tuple(
            (each.run, each.kind, KINDS[each.kind], each.total, each.shown)
            for each in data.contested
        ),
        (
            "where fewer are shown than there are, they are a random sample of the kind, drawn by "
            "a digest of the id; a pair may be of two kinds",
            "counts are over all outcomes, not over the sample",
        ),
    )
    return Section(
        *("contested", "Pairs to look at"),
        (
            "Contested pairs with their texts, votes and reasons, and some uncontested ones to "
            "compare. Arrow keys move through the list.",
        ),
        tables=(table,),
        browser=True,
    )


def _method(data: ReportData) -> Section:
    made = data.made
    texts = (
        f"{made.pairs_with_texts:,}, from {', '.join(made.pairs)}"
        if made.pairs
        else "0; give the judged pairs with --pairs"
    )
    prompts = f"{made.prompts:,}"
    if not made.clustered:
        prompts += ": no pair names its prompt, each stands for itself"
    how = Table(
        "How this report was made",
        ("what", "value"),
        (
            ("outcome files", ", ".join(each.path for each in data.sources)),
            ("labels", made.labels),
            ("one label from several votes", made.label_rule),
            ("pairs with their texts", texts),
            ("prompts (clusters)", prompts),
            (
                "intervals",
                f"{made.level:.0%}, over prompts, {made.draws:,} draws, seed {made.seed}",
            ),
            ("dikast", made.dikast),
        ),
        tuple(f"tie rule {rule}: {text}" for rule, text in TIE_RULES.items()),
    )
    rows = [(source.name, *row) for source in data.sources for row in _spec_rows(source)]
    spec = Table("What produced the outcomes", ("run", "what", "value"), tuple(rows))
    return Section("method", "Method notes", (), (), (how, spec) if rows else (how,))


def _spec_rows(source: Source) -> Iterator[tuple[str, str]]:
    """What decided the results, from the manifest; the strategies alone where there is none."""
    for name, count in source.strategies.items():
        yield "strategy", f"{name or 'not said'} ({count:,} outcomes)"
    manifest = source.manifest
    if manifest is None:
        return
    yield "spec", manifest.spec
    seen: set[tuple[str, str]] = set()
    for row in _nodes(manifest.spec_tree):
        if row not in seen:
            seen.add(row)
            yield row
    for run in manifest.runs[-1:]:
        yield "command", "dikast " + " ".join(run.argv)
        yield "versions", ", ".join(f"{name} {number}" for name, number in run.versions.items())


def _nodes(tree: object) -> Iterator[tuple[str, str]]:
    """Judges and templates anywhere in a spec tree."""
    if isinstance(tree, Mapping):
        node = cast("Mapping[str, Any]", tree)
        if {"provider", "model", "params"} <= set(node):
            params = cast("Mapping[str, Any]", node["params"] or {})
            said = ", ".join(
                f"{name} {value}" for name, value in params.items() if value is not None
            )
            yield (
                "judge",
                f"{node.get('name')}: {node['model']} at {node['provider']} "
                f"{node.get('endpoint') or ''} ({said})",
            )
        elif {"name", "version", "hash"} <= set(node):
            yield "template", f"{node['name']}@{node['version']} {str(node['hash'])[:16]}"
        for value in node.values():
            yield from _nodes(value)
    elif isinstance(tree, list | tuple):
        for value in cast("list[object]", tree):
            yield from _nodes(value)
