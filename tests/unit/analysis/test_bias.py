"""Biases: planted ones are found, absent ones are not, and the laws of each measure hold."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dikast.analysis.bias import (
    Judged,
    Position,
    judged_of,
    noise,
    position,
    score_spread,
    self_preference,
)
from dikast.analysis.bias_report import read_flips
from dikast.analysis.bias_text import TextTable, logistic, measures, text_bias
from dikast.analysis.counting import Counting, Options
from dikast.analysis.ratings import NONE, Ratings, Run, Votes
from dikast.engine.errors import InputError
from dikast.strategies.families import family_of
from tests.unit.analysis.test_ratings import outcome, ratings_of

PICK = st.integers(min_value=0, max_value=3)
OPTIONS = Options(draws=200)


def judged(cells: list[tuple[int, int]]) -> Judged:
    """A judge that picked once in each order; 0 is A, 1 tie, 2 B, 3 unreadable."""
    counts = np.zeros((len(cells), 2, 4), dtype=np.uint16)
    for pair, picks in enumerate(cells):
        for order, pick in enumerate(picks):
            counts[pair, order, pick] += 1
    return Judged("j", "j", Votes(counts))


def plain(pairs: int) -> tuple[Ratings, Any, Counting]:
    """Pairs without models or labels, each a prompt of its own."""
    ratings = Ratings()
    for pair in range(pairs):
        ratings.set_prompt(ratings._row(str(pair)), str(pair))
    return ratings, ratings.truth(), Counting(ratings.clusters, OPTIONS)


def position_of(cells: list[tuple[int, int]]) -> Position:
    ratings, labels, count = plain(len(cells))
    found = position(judged(cells), ratings, labels, count)
    assert found is not None
    return found


def test_position_is_counted_by_hand() -> None:
    found = position_of([(0, 0), (0, 2), (0, 1), (2, 0), (1, 1), (3, 0)])
    assert (found.asked, found.readable, found.votes_read) == (6, 5, 11)
    assert (found.consistent, found.leans_first, found.leans_second) == (2, 2, 1)
    assert found.strict.value == pytest.approx(2 / 6)
    assert found.lenient.value == pytest.approx(2 / 5)
    assert found.bias.value == pytest.approx((0 + 2 + 1 - 2 + 0) / 4 / 5)


def test_a_judge_that_always_takes_the_first_has_bias_one_half() -> None:
    found = position_of([(0, 2)] * 8)
    assert (found.lenient.value, found.bias.value, found.leans_first) == (0.0, 0.5, 8)


@given(cells=st.lists(st.tuples(PICK, PICK), min_size=1, max_size=30))
def test_exchanging_the_orders_turns_the_bias_and_nothing_else(
    cells: list[tuple[int, int]],
) -> None:
    one, two = position_of(cells), position_of([(b, a) for a, b in cells])
    assert (one.consistent, one.readable) == (two.consistent, two.readable)
    assert (one.leans_first, one.leans_second) == (two.leans_second, two.leans_first)
    if one.bias.value is not None:
        assert two.bias.value == pytest.approx(-one.bias.value)


def test_consistency_grows_with_the_quality_gap(tmp_path: Path) -> None:
    rows = []
    for n in range(60):  # x against y is even and inconsistent, x against z always won
        picks = "ab:A ba:B" if n % 2 else "ab:B ba:A"
        rows.append(outcome(f"y{n}", "tie", picks, model_a="x", model_b="y"))
        turned = {"model_a": "z", "model_b": "x"} if n % 3 else {"model_a": "x", "model_b": "z"}
        winner = "B" if n % 3 else "A"
        rows.append(outcome(f"z{n}", winner, f"ab:{winner} ba:{winner}", **turned))
    ratings = ratings_of(tmp_path, rows)
    count = Counting(ratings.clusters, OPTIONS)
    found = position(judged_of(ratings)[0], ratings, ratings.truth(), count)
    assert found is not None
    by_gap = {gap.low: (gap.consistency.n, gap.consistency.value) for gap in found.by_gap}
    assert by_gap[0.0] == (60, 0.0)
    assert by_gap[0.4] == (60, 1.0)


def test_variance_components_are_found_again() -> None:
    rng = np.random.default_rng(8)
    pairs, samples = 4000, 3
    base = rng.normal(0, 1.0, size=pairs)
    shift = rng.normal(0, 0.5, size=(pairs, 2))
    score = base[:, None, None] + shift[:, :, None] + rng.normal(0, 0.7, (pairs, 2, samples))
    counts = np.zeros((pairs, 2, 4), dtype=np.uint16)
    picks = np.where(score > 0.4, 0, np.where(score < -0.4, 2, 1))
    for code in range(3):
        counts[:, :, code] = (picks == code).sum(axis=2)
    values = (1.0 - picks).astype(np.float64)
    count = Counting(np.arange(pairs), OPTIONS)
    found = noise(Judged("j", "j", Votes(counts)), count)
    assert found is not None
    cell = values.mean(axis=2)
    within = values.var(axis=2, ddof=1).mean()
    between = cell.var(axis=1, ddof=1).mean() - within / samples
    over = cell.mean(axis=1).var(ddof=1) - between / 2 - within / (2 * samples)
    parts = (found.noise_variance.value, found.order_variance.value, found.pair_variance.value)
    assert parts == pytest.approx((within, between, over), abs=1e-9)
    assert found.noise_share.value == pytest.approx(within / (within + between + over))
    assert found.modal_share.value == pytest.approx(counts.max(axis=2).mean() / samples)


def test_a_judge_that_answers_once_has_no_known_noise() -> None:
    _, _, count = plain(3)
    assert noise(judged([(0, 0), (1, 2), (2, 2)]), count) is None


def test_a_steady_judge_has_no_noise() -> None:
    counts = np.zeros((6, 2, 4), dtype=np.uint16)
    counts[:3, :, 0] = counts[3:, :, 2] = 4
    _, _, count = plain(6)
    found = noise(Judged("j", "j", Votes(counts)), count)
    assert found is not None
    assert (found.noise_share.value, found.unanimous.value) == (0.0, 1.0)
    assert found.pair_variance.value == pytest.approx(1.2)  # of 1, 1, 1, -1, -1, -1


def test_scores_that_collapse_have_low_entropy() -> None:
    run = Run("r", "r")
    run.scores["total"] = Counter({7.0: 90, 8.0: 8, 3.0: 2})
    found = score_spread(run, 0.95)[0]
    assert found.entropy_bits == pytest.approx(stats.entropy([90, 8, 2], base=2))
    assert found.entropy_max_bits == pytest.approx(np.log2(3))
    assert (found.modal_score, found.modal_share.value) == (7.0, 0.9)
    assert found.mean == pytest.approx(7.0 * 0.9 + 8.0 * 0.08 + 3.0 * 0.02)
    run.scores["total"] = Counter({5.0: 40})
    assert score_spread(run, 0.95)[0].entropy_bits == 0.0


def test_a_judge_that_favours_its_family_is_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = []
    for n in range(400):
        label = "A" if rng.random() < 0.5 else "B"
        own_first = n % 2 == 0
        mine = "A" if own_first else "B"
        models = {"model_a": "gpt-4" if own_first else "claude-2",
                  "model_b": "claude-2" if own_first else "gpt-4"}  # fmt: skip
        pick = mine if rng.random() < 0.3 else label
        picks = f"gpt-4o/ab:{pick} other/ab:{label}"
        rows.append(outcome(f"p{n}", label, picks, label=label, **models))
    ratings = ratings_of(tmp_path, rows)
    count = Counting(ratings.clusters, OPTIONS)
    judges = judged_of(ratings)
    own, cells = self_preference(judges, ratings, ratings.truth(), family_of, count)
    assert [(each.judge, each.family, each.reference_is) for each in own] == [
        ("gpt-4o", "openai", "labels")
    ]
    assert own[0].excess.value == pytest.approx(0.15, abs=0.04)
    assert own[0].excess.interval is not None
    assert own[0].excess.interval.low > 0.1
    assert {(cell.judge, cell.family) for cell in cells} == {
        (judge, family) for judge in ("gpt-4o", "other") for family in ("openai", "anthropic")
    }
    without = np.full(len(ratings), NONE, dtype=np.int8)
    other_judges, _ = self_preference(judges, ratings, without, family_of, count)
    assert other_judges[0].reference_is == "other judges"
    assert other_judges[0].excess.value == pytest.approx(own[0].excess.value)


def test_logistic_equals_statsmodels_with_clusters() -> None:
    rng = np.random.default_rng(6)
    clusters = np.repeat(np.arange(60), 5)
    x = np.column_stack([rng.normal(size=300), rng.integers(-1, 2, size=300)]).astype(np.float64)
    shared = rng.normal(0, 0.6, size=60)[clusters]
    chance = 1 / (1 + np.exp(-(0.3 + 0.8 * x[:, 0] - 0.4 * x[:, 1] + shared)))
    y = (rng.random(300) < chance).astype(np.float64)
    y[::11] = 0.5
    theirs = sm.GLM(y, sm.add_constant(x), family=sm.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}
    )
    ours = logistic(x, y, clusters, 0.95)
    assert [each.value for each in ours] == pytest.approx(np.exp(theirs.params[1:]).tolist())
    factor = (60 / 59) ** 0.5  # the small-sample factor that statsmodels was told to leave out
    for at, each in enumerate(ours, start=1):
        assert each.interval is not None
        half = 1.959964 * theirs.bse[at] * factor
        low, high = np.exp(theirs.params[at] - half), np.exp(theirs.params[at] + half)
        assert (each.interval.low, each.interval.high) == pytest.approx((low, high), rel=1e-5)


def test_a_fit_without_an_answer_gives_none_and_no_infinity() -> None:
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]] * 5)
    y = (x[:, 0] > 0).astype(np.float64)
    assert logistic(x, y, np.arange(20), 0.95)[0].value is None
    assert logistic(x[:2], y[:2], np.arange(2), 0.95)[0].value is None
    constant = logistic(np.ones((20, 1)), y, np.arange(20), 0.95)
    assert constant[0].value is None


def test_marks_of_format_are_counted() -> None:
    text = "# Title\n\nSome **bold** text.\n- one\n* two\n  3. three\n```py\nx = 1\n```\n#nothing"
    assert measures(text) == (len(text), 3, 1, 1, 1)
    assert measures("") == (0, 0, 0, 0, 0)
    assert measures("2.5 is no list\n-5 neither") == (25, 0, 0, 0, 0)


def test_a_judge_that_favours_length_is_found_beside_people_who_do_not() -> None:
    rng = np.random.default_rng(12)
    pairs = 1500
    texts = TextTable()
    lengths = rng.integers(50, 800, size=(pairs, 2))
    for pair, (a, b) in enumerate(lengths):
        texts.take(pair, "x" * int(a), "x" * int(b))
    labels = rng.integers(0, 2, size=pairs) * 2
    chance = 1 / (1 + np.exp(-(0.9 * np.log2(lengths[:, 0] / lengths[:, 1]) + (1 - labels))))
    codes = np.where(rng.random(pairs) < chance, 0, 2)
    count = Counting(np.arange(pairs), OPTIONS)
    found = text_bias("j", codes.astype(np.int8), labels.astype(np.int8), texts, count)
    assert found is not None
    assert found.people_length.value == pytest.approx(1.0, abs=0.12)
    assert found.length_given_label.value == pytest.approx(np.exp(0.9), rel=0.1)
    assert found.length.interval is not None
    assert found.length.interval.low > 1.5
    assert [effect.feature for effect in found.joint] == ["length"]
    shares = [part.judge.value for part in found.by_ratio]
    assert shares[-1] is not None
    assert shares[0] is not None
    assert shares[-1] > shares[0]


def test_a_feature_that_few_pairs_differ_in_does_not_cost_the_others_their_number() -> None:
    rng = np.random.default_rng(14)
    texts = TextTable()
    lengths = rng.integers(50, 800, size=(300, 2))
    codes = rng.integers(0, 2, size=300) * 2
    for pair, (a, b) in enumerate(lengths):
        bold = "**x**" if pair < 12 and codes[pair] == 0 else ""  # who has bold always wins
        heading = "# x\n" if pair == 20 else ""
        texts.take(pair, heading + bold + "x" * int(a), "x" * int(b))
    count = Counting(np.arange(300), OPTIONS)
    none = np.full(300, NONE, dtype=np.int8)
    found = text_bias("j", codes.astype(np.int8), none, texts, count)
    assert found is not None
    effects = {effect.feature: effect for effect in found.joint}
    assert effects["length"].odds_ratio.value == pytest.approx(1.0, abs=0.3)
    assert effects["headings"].odds_ratio.value is None
    assert effects["headings"].differing == 1
    assert effects["bold"].odds_ratio.value is None
    assert found.length_given_label.value is None


def test_the_injection_report_is_read_and_another_file_refused() -> None:
    report = {
        "all": {"toward": 6, "could": 40, "unread": 1},
        "families": {"plain order": {"toward": 6, "could": 20}},
        "placebo": {"toward": 1, "could": 20},
    }
    flips = read_flips(msgspec.json.encode(report), "i.json", 0.95)
    assert [(each.family, each.flipped, each.n, each.unread) for each in flips] == [
        ("all", 6, 40, 1),
        ("plain order", 6, 20, 0),
        ("placebo (no instruction)", 1, 20, 0),
    ]
    with pytest.raises(InputError, match=r"i\.json: is not the JSON of dikast check"):
        read_flips(b"{}", "i.json", 0.95)


@pytest.mark.parametrize(
    ("name", "family"),
    [("gpt-4o-2024", "openai"), ("meta-llama/Llama-3", "meta"), ("main", None), (None, None)],
)
def test_a_name_tells_its_family(name: str | None, family: str | None) -> None:
    assert family_of(name) == family
