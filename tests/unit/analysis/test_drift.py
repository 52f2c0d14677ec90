"""Drift between two runs on the same anchors: what raises the alarm and what does not."""

import random
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dikast.analysis.drift import (
    Drift,
    Judged,
    Measure,
    check_drift,
    ks_distance,
    paired_ks,
    share_difference,
    student,
)
from dikast.analysis.tolerance import Tolerance, check_tolerance
from dikast.engine.errors import ConfigError
from dikast.engine.model import Winner


def verdicts(count: int, pick: Callable[[int], Winner | None]) -> list[Judged]:
    return [
        Judged(id=str(n), winner=pick(n), label="A" if n % 2 else "B", why="unparsed")
        for n in range(count)
    ]


def right(n: int) -> Winner:
    return "A" if n % 2 else "B"


def scored(count: int, seed: int, shift: float = 0.0, noise: float = 0.5) -> list[Judged]:
    """Scores that belong to the items, the judge's own noise, and a shift of every score."""
    worth, own = random.Random(1), random.Random(seed)
    found: list[Judged] = []
    for n in range(count):
        a, b = worth.uniform(3, 9), worth.uniform(3, 9)
        scores = {
            f"{side}.clarity": float(round(value + shift + own.gauss(0, noise)))
            for side, value in (("A", a), ("B", b))
        }
        found.append(Judged(id=str(n), winner=right(n), scores=scores))
    return found


def measure(found: Drift, name: str) -> Measure:
    return next(each for each in found.measures if each.name == name)


def test_the_same_run_twice_is_in_control() -> None:
    run = scored(40, seed=2)
    found = check_drift(run, run)
    assert found.in_control
    assert all(each.p in (None, 1.0) for each in found.measures)
    assert (found.items, found.common) == (40, 40)


def test_a_shift_of_the_scores_is_found_with_its_size() -> None:
    found = check_drift(scored(60, seed=2), scored(60, seed=3, shift=1.0))
    mean = measure(found, "mean clarity")
    assert mean.out_of_control
    assert mean.interval is not None
    assert mean.interval.low < 1.0 < mean.interval.high
    assert mean.interval.low > 0
    assert measure(found, "distribution clarity").out_of_control
    assert not measure(found, "win share of A").out_of_control


def test_a_shift_within_the_tolerance_is_told_and_raises_no_alarm() -> None:
    before, after = scored(60, seed=2), scored(60, seed=3, shift=1.0)
    found = check_drift(before, after, Tolerance(max_shift_sd=2.0, max_ks=0.9))
    mean = measure(found, "mean clarity")
    assert mean.p_holm is not None
    assert mean.p_holm < 0.01
    assert found.in_control


def test_a_judge_that_is_only_noisy_raises_the_alarm_as_seldom_as_alpha_says() -> None:
    strict = Tolerance(alpha=0.1, max_shift_sd=0.0, max_ks=0.0, max_win_shift=0.0)
    checks = [check_drift(scored(30, 2 * n), scored(30, 2 * n + 1), strict) for n in range(60)]
    alarms = sum(not found.in_control for found in checks)
    assert alarms <= 11  # 6 expected; more than 11 has a chance below 2 %
    p_values = [measure(found, "mean clarity").p for found in checks]
    assert 0.3 < float(np.mean([p for p in p_values if p is not None])) < 0.7


def test_more_spread_with_the_same_mean_is_a_change_of_the_distribution_alone() -> None:
    before = [
        Judged(id=str(n), winner=right(n), scores={"A.x": 5 + n % 2, "B.x": 6 - n % 2})
        for n in range(60)
    ]
    after = [
        Judged(id=str(n), winner=right(n), scores={"A.x": 1 + 9 * (n % 2), "B.x": 10 - 9 * (n % 2)})
        for n in range(60)
    ]
    found = check_drift(before, after)
    assert [each.name for each in found.alarms] == ["distribution x"]
    assert measure(found, "mean x").change == 0.0


def test_a_judge_that_agrees_less_with_the_labels_is_found_by_mcnemar() -> None:
    before = verdicts(60, right)
    after = verdicts(60, lambda n: right(n + (n < 18)))
    found = check_drift(before, after, Tolerance(max_flip_rate=1.0))
    agreement = measure(found, "agreement with labels")
    assert (agreement.before, agreement.after) == (1.0, 0.7)
    assert agreement.p == pytest.approx(stats.binomtest(0, 18, 0.5).pvalue)
    assert found.alarms == (agreement,)


def test_changed_verdicts_raise_the_alarm_when_their_interval_lies_beyond_the_limit() -> None:
    before = verdicts(100, right)

    def flipped(count: int) -> Drift:
        # As many lost as won: neither the win share nor the agreement moves.
        after = verdicts(100, lambda n: "tie" if n < count else right(n))
        return check_drift(before, after, Tolerance(max_win_shift=1.0, alpha=1e-30))

    assert flipped(30).in_control  # 30 % [22, 40]: beyond 25 %, but not shown to be
    assert [each.name for each in flipped(38).alarms] == ["verdicts changed"]


def test_a_baseline_judged_twice_tells_change_from_noise() -> None:
    before = [
        msgspec.structs.replace(each, again="tie" if n % 5 == 0 else each.winner, label=None)
        for n, each in enumerate(verdicts(100, right))
    ]

    def since(changed: Callable[[int], bool]) -> Drift:
        after = verdicts(100, lambda n: "tie" if changed(n) else right(n))
        return check_drift(before, [msgspec.structs.replace(each, label=None) for each in after])

    noisy = since(lambda n: n % 5 == 1)  # others change, and as many
    assert noisy.in_control
    assert measure(noisy, "changes beyond noise").before == 0.2
    assert since(lambda n: n % 50 == 0).in_control  # a steadier judge is no alarm
    changed = since(lambda n: n % 2 == 1 or n % 5 == 0)
    alarm = measure(changed, "changes beyond noise")
    assert alarm.p == pytest.approx(stats.binomtest(0, 40, 0.5).pvalue)
    assert alarm.out_of_control


def test_a_judge_that_stops_answering_is_out_of_control_and_no_item_is_made_up() -> None:
    before = verdicts(40, right)
    after = verdicts(40, lambda n: None if n < 6 else right(n))
    found = check_drift(before, after)
    assert [each.name for each in found.alarms] == ["verdicts missing"]
    assert found.common == 34
    assert found.missing_after == {"unparsed": 6}
    assert found.agreement is not None
    assert (found.agreement.items, found.agreement.left_out) == (34, 6)


def test_runs_without_a_common_verdict_never_pass() -> None:
    none = verdicts(5, lambda _: None)
    assert not check_drift(verdicts(5, right), none).in_control
    assert not check_drift(none, verdicts(5, right)).in_control
    # Not even where every loss is tolerated.
    assert not check_drift(verdicts(5, right), none, Tolerance(max_missing=1.0)).in_control


def test_runs_on_other_items_are_refused() -> None:
    with pytest.raises(ValueError, match="different items"):
        check_drift(verdicts(5, right), verdicts(6, right))


@pytest.mark.parametrize(("agreed", "capable"), [(28, True), (27, False)])
def test_the_bar_of_capability_is_held_against_todays_agreement(agreed: int, capable: bool) -> None:
    after = verdicts(40, lambda n: right(n + (n >= agreed)))
    found = check_drift(after, after, Tolerance(min_agreement=0.7))
    assert found.capable is capable
    assert found.in_control


def test_without_labels_nothing_is_said_of_agreement() -> None:
    run = [msgspec.structs.replace(each, label=None) for each in verdicts(10, right)]
    found = check_drift(run, run)
    assert found.agreement is None
    assert found.capable is None


def test_the_order_of_the_results_does_not_matter() -> None:
    before, after = scored(20, seed=2), scored(20, seed=3)
    one, two = check_drift(before, after), check_drift(before, after[::-1])
    assert [each.change for each in one.measures] == [each.change for each in two.measures]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=3, max_size=30))
def test_the_distance_is_that_of_scipy(pairs: list[tuple[int, int]]) -> None:
    first = np.array([each[0] for each in pairs], dtype=np.float64)
    second = np.array([each[1] for each in pairs], dtype=np.float64)
    assert ks_distance(first, second) == pytest.approx(
        stats.ks_2samp(first, second, method="asymp").statistic
    )


def test_the_permutation_p_is_that_of_all_exchanges() -> None:
    before = np.array([[1.0], [2.0], [2.0], [3.0], [5.0], [1.0], [4.0]])
    after = np.array([[2.0], [4.0], [3.0], [5.0], [5.0], [3.0], [5.0]])
    seen = ks_distance(before, after)
    far = 0
    for pattern in range(1 << 7):
        turned = np.array([[pattern >> n & 1] for n in range(7)], dtype=bool)
        one, two = np.where(turned, after, before), np.where(turned, before, after)
        far += ks_distance(one, two) >= seen - 1e-9
    _, p = paired_ks(before, after, seed=1)
    assert p == pytest.approx(far / (1 << 7), abs=0.02)


def test_the_interval_of_a_mean_is_students_and_absent_where_nothing_varies() -> None:
    values = [0.5, 1.0, -0.25, 2.0, 0.0]
    interval = student(values)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert student([1.0]) is None
    assert student([1.0, 1.0, 1.0]) is None


def test_the_interval_of_a_difference_of_shares_is_the_published_one() -> None:
    # Newcombe 1998, table II, contrast (a): 56/70 - 48/80, method 10.
    interval = share_difference(56, 70, 48, 80)
    assert (interval.low, interval.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@pytest.mark.parametrize(
    ("field", "value"),
    [("alpha", 0.0), ("max_shift_sd", float("nan")), ("max_flip_rate", 1.5), ("max_ks", -0.1)],
)
def test_a_limit_that_cannot_be_held_is_named(field: str, value: float) -> None:
    limits = msgspec.structs.replace(Tolerance(), **{field: value})
    with pytest.raises(ConfigError, match=rf"anchors\.{field}: must"):
        check_tolerance(limits)
