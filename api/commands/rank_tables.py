"""A ranking as people read it: the table, the matrix, the proposals, the comparison.

Draws records of `dikast.analysis.ranking`; computes nothing.
"""

from collections.abc import Mapping, Sequence

from dikast.analysis.ranking import Comparison, Proposal, Ranking
from dikast.tables import Cell, Measure, Share, Table

_NAMES = {
    "bt": "Bradley-Terry",
    "davidson": "Davidson (Bradley-Terry with ties)",
    "rao-kupper": "Rao-Kupper (Bradley-Terry with a threshold for ties)",
}
_MATRIX_MODELS_MAX = 20
_SIDE_MARKS = {"above": " ^", "below": " v", "apart": " ?"}
_JUDGES_MAX = 60


def of_ranking(ranking: Ranking, notes: Sequence[str], *, matrix: bool) -> list[Table]:
    """The ranking, what covariates and judges weigh where there are any, and the matrix."""
    tables = [_models(ranking, notes)]
    if ranking.effects:
        tables.append(_effects(ranking))
    if ranking.judge_weights:
        tables.append(_weights(ranking))
    if matrix:
        tables.append(_matrix(ranking))
    return tables


def _models(ranking: Ranking, notes: Sequence[str]) -> Table:
    columns = ["rank", "model", "rating", "places", "win rate", "n", "won", "lost", "tied"]
    controlled = bool(ranking.effects)
    elo = any(each.elo is not None for each in ranking.models)
    columns += ["controlled"] * controlled + ["Elo"] * elo
    columns = ["group"] * (ranking.groups > 1) + columns
    rows: list[tuple[Cell, ...]] = []
    for each in ranking.models:
        places = (
            str(each.rank_low)
            if each.rank_low == each.rank_high
            else f"{each.rank_low}-{each.rank_high}"
        )
        row: list[Cell] = [
            each.rank,
            each.model + _SIDE_MARKS.get(each.side or "", ""),
            Measure(each.rating, each.interval, 0),
            places,
            Share(each.win_rate, each.win_rate_interval),
            each.battles,
            each.wins,
            each.losses,
            each.ties,
        ]
        if controlled:
            row.append(Share(each.controlled_win_rate))
        if elo:
            row.append(Measure(each.elo, None, 0))
        rows.append(tuple([each.group + 1] * (ranking.groups > 1) + row))
    return Table(
        f"Ranking: {_NAMES[ranking.settings.model]}",
        tuple(columns),
        tuple(rows),
        (*_basis(ranking), *notes, *ranking.notes),
    )


def _basis(ranking: Ranking) -> list[str]:
    """What the numbers were computed on, and how."""
    settings = ranking.settings
    level = f"{settings.level:.0%}"
    sources = ranking.clustered_by
    by = (
        ", ".join(f"{name} ({count:,} rows)" for name, count in sources.items())
        if len(sources) > 1
        else "".join(sources)
    )
    lines = [
        f"{_many(ranking.battles, 'battle')} of {_many(len(ranking.models), 'model')} before "
        f"{_many(ranking.judges, 'judge')} on {_many(ranking.prompts, 'prompt')}"
        + (f"; the prompt is the row's {by}" if by else ""),
        f"{_many(ranking.ties, 'tie')} and {_many(ranking.disagreements, 'pair')} whose two orders "
        f"disagree: {_tie_rule(ranking)}",
    ]
    if ranking.orders_merged or ranking.single_order:
        lines.append(
            f"two orders are one battle: {ranking.orders_merged:,} pairs had both, "
            f"{ranking.single_order:,} only one"
        )
    left = ", ".join(f"{count:,} {why}" for why, count in ranking.left_out.items())
    lines.append(f"left out: {left or 'nothing'}")
    lines.append(f"rating: {ranking.scale}; ridge {settings.ridge:g}")
    method = ranking.models[0].interval.method
    lines.append(
        f"[low, high]: {level}, {method}; places: ranks left open when every two models are "
        f"compared at {level}, not corrected for their number"
    )
    if any(each.side for each in ranking.models):
        lines.append("^ v ?: the data set no upper, no lower, or neither bound; see below")
    if any(each.elo is not None for each in ranking.models):
        lines.append("Elo: K 4, start 1000, in the order of the rows; another order, other numbers")
    return lines


def _tie_rule(ranking: Ranking) -> str:
    settings = ranking.settings
    if settings.ties == "drop":
        return "left out"
    if settings.model == "bt" or ranking.tie_parameter is None:
        rule = "half a win for each"
    else:
        rule = f"modelled (tie parameter {ranking.tie_parameter:.3f})"
    return rule + (", disagreements left out" if settings.disagreements == "drop" else "")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _effects(ranking: Ranking) -> Table:
    return Table(
        "What is held at zero",
        ("difference A - B", "logits for one standard deviation", "standard deviation"),
        tuple(
            (each.name, Measure(each.estimate, each.interval, signed=True), each.standard_deviation)
            for each in ranking.effects
        ),
        (
            "a difference is (a - b) / (a + b); above zero, having more of it wins battles",
            "controlled: expected share of points against the opponents met, all differences zero",
        ),
    )


def _weights(ranking: Ranking) -> Table:
    ordered = sorted(ranking.judge_weights, key=lambda each: (-each.weight, each.judge))
    more = len(ordered) - _JUDGES_MAX
    notes = [
        "found from the verdicts alone, so judges that err alike look reliable; the intervals of "
        "the ranking take the weights as known"
    ]
    if more > 0:
        notes.append(f"{more:,} further judges are not shown here; --json has all")
    return Table(
        "What judges count for",
        ("judge", "battles", "weight", "accuracy or agreement"),
        tuple(
            (each.judge or "-", each.battles, each.weight, Share(each.accuracy))
            for each in ordered[:_JUDGES_MAX]
        ),
        tuple(notes),
    )


def _matrix(ranking: Ranking) -> Table:
    names = [each.model for each in ranking.models][:_MATRIX_MODELS_MAX]
    rows: list[tuple[Cell, ...]] = []
    for i, name in enumerate(names):
        cells: list[Cell] = [f"{i + 1} {name}"]
        for j in range(len(names)):
            met = ranking.met_matrix[i][j]
            cells.append(f"{ranking.win_matrix[i][j] / met:.0%} of {met}" if met else "")
        rows.append(tuple(cells))
    notes = ["share of points the row took from the column, of so many battles; ties are half"]
    if len(ranking.models) > len(names):
        notes.append(f"the first {len(names)} of {len(ranking.models)}; --json has all")
    return Table(
        "Win rates",
        ("", *(str(place + 1) for place in range(len(names)))),
        tuple(rows),
        tuple(notes),
    )


def of_proposals(proposals: Sequence[Proposal], battles: int) -> Table:
    """What to judge next."""
    settled = sum(each.gain for each in proposals)
    return Table(
        f"The next {battles:,} battles",
        ("model", "model", "battles", "met so far", "wrong order", "settles"),
        tuple(
            (
                each.model_a,
                each.model_b,
                each.battles,
                each.met,
                Share(each.wrong_order),
                Share(each.gain),
            )
            for each in proposals
        ),
        (
            "wrong order: the probability that the two stand in the wrong order now",
            f"settles: share of what is open in the ranking; all together {settled:.1%}. "
            "Use prompts that the two have not met on: battles on one prompt say less",
        ),
    )


def of_comparison(found: Comparison, path: str) -> Table:
    """How the ranking stands to a reference."""
    rows: list[tuple[Cell, ...]] = [
        ("Kendall tau-b", found.models, Measure(found.kendall_tau_b, found.kendall_interval)),
        ("Spearman rho", found.models, Measure(found.spearman, found.spearman_interval)),
        ("pairs of models ordered alike", found.pairs, Share(found.same_order)),
        ("separability here", found.pairs, Share(found.separability)),
        ("separability of the reference", found.pairs, Share(found.reference_separability)),
        ("agreement with confidence", found.pairs, Share(found.agreement_with_confidence)),
    ]
    notes = [
        "separability: share of model pairs whose intervals do not overlap; agreement with "
        "confidence: both separate them alike, minus both separate them the other way round"
        + ("" if found.agree is None else f" ({found.agree} against {found.disagree})"),
        "intervals of the correlations: Fisher z, the models as a sample",
    ]
    for where, names in (("here", found.only_here), ("in the reference", found.only_there)):
        if names:
            shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            notes.append(f"only {where} ({len(names)}), so left out: {shown}")
    return Table(f"Against {path}", ("measure", "n", "value"), tuple(rows), (*notes, *found.notes))


def of_parts(parts: Mapping[str, tuple[Ranking, Comparison | None]], field: str) -> list[Table]:
    """An overview of the rankings by judge or group, then each of them."""
    shown = list(parts.items())[:_JUDGES_MAX]
    rows = tuple(
        (
            name or "-",
            ranking.battles,
            len(ranking.models),
            ranking.models[0].model,
            Measure(with_all.kendall_tau_b, with_all.kendall_interval) if with_all else None,
        )
        for name, (ranking, with_all) in shown
    )
    more = len(parts) - len(shown)
    overview = Table(
        f"A ranking for each {field}",
        (field, "battles", "models", "first", "Kendall tau-b with all"),
        rows,
        (
            "the ranking of all contains the battles of each, so the tau is too kind",
            *((f"{more:,} further ones are not shown here; --json has all",) if more > 0 else ()),
        ),
    )
    return [
        overview,
        *(
            Table(f"{name or '-'}: {each.title}", each.columns, each.rows, each.notes)
            for name, (ranking, _) in shown
            for each in of_ranking(ranking, (), matrix=False)
        ),
    ]
