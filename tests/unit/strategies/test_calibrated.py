"""Calibrated confidence: the map as a file, what it does to a verdict, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dikast.engine.errors import ConfigError, InputError, ProviderError
from dikast.engine.model import Judge, Outcome, Undecided, Verdict
from dikast.engine.spec import spec_hash, spec_tree
from dikast.strategies import (
    Calibration,
    Loaders,
    build,
    calibrated,
    cascade,
    committee,
    load_calibration,
    parse_strategy,
)
from dikast.strategies.calibration_file import FORMAT, Metrics, raw_of
from tests.unit.strategies.panels import PAIR, Desk, Told, panel


def calibration(**more: Any) -> Calibration:
    plain: dict[str, Any] = {
        "format": FORMAT,
        "method": "isotonic",
        "raw": "confidence",
        "spec": spec_hash(spec_tree(Told("A"))),
        "strategy": "told",
        "fitted_on": 100,
        "agreed": 70,
        "left_out": {},
        "before": Metrics(ece=0.2, brier=0.3),
        "after": Metrics(ece=0.1, brier=0.2),
        "folds": 5,
        "bins": 10,
        "seed": 0,
        "knots": ((0.5, 0.4), (0.7, 0.6), (0.9, 0.6), (1.0, 0.9)),
    }
    return Calibration(**{**plain, **more}).hashed()


def verdict(outcome: Outcome) -> Verdict:
    assert isinstance(outcome, Verdict)
    return outcome


@pytest.mark.parametrize(
    ("raw", "mapped"),
    [
        (0.0, 0.4),
        (0.5, 0.4),
        (0.6, 0.5),
        (0.7, 0.6),
        (0.8, 0.6),
        (0.95, 0.75),
        (1.0, 0.9),
        (9, 0.9),
    ],
)
def test_an_isotonic_map_is_straight_between_its_knots_and_flat_outside(
    raw: float, mapped: float
) -> None:
    assert calibration().probability(raw) == pytest.approx(mapped)


def test_platts_map_is_a_sigmoid_that_never_overflows() -> None:
    platt = calibration(method="platt", slope=2.0, intercept=-1.0, knots=())
    assert platt.probability(0.5) == 0.5
    assert platt.probability(1.0) == pytest.approx(0.7310586)
    assert platt.probability(-1e6) == 0.0
    assert platt.probability(1e6) == 1.0


async def test_a_verdict_keeps_its_winner_and_shows_both_confidences() -> None:
    inner = Told("A", confidence=0.95)
    outcome = verdict(await calibrated(inner, calibration()).judge(PAIR, Desk()))
    assert (outcome.winner, outcome.confidence, outcome.raw_confidence) == ("A", 0.75, 0.95)
    turned = outcome.unswapped()
    assert (turned.winner, turned.confidence) == ("B", 0.75)
    unknown = verdict(await calibrated(Told("A"), calibration()).judge(PAIR, Desk()))
    assert (unknown.confidence, unknown.raw_confidence) == (None, None)


async def test_below_the_bar_it_abstains_and_says_what_it_would_have_said() -> None:
    low = calibrated(Told("A", confidence=0.6), calibration(), abstain_below=0.55)
    outcome = await low.judge(PAIR, Desk())
    assert isinstance(outcome, Undecided)
    assert outcome.why == "abstained"
    assert outcome.detail == (
        "people agree with the verdict A with probability 0.500 (confidence 0.600), below 0.55"
    )
    assert [vote.pick for vote in outcome.votes] == ["A"]
    just = calibrated(Told("A", confidence=0.6), calibration(), abstain_below=0.5)
    assert verdict(await just.judge(PAIR, Desk())).confidence == 0.5
    missing = await calibrated(Told("A"), calibration(), abstain_below=0.1).judge(PAIR, Desk())
    assert isinstance(missing, Undecided)
    assert missing.detail == "the verdict A has no confidence to calibrate"


async def test_what_is_no_verdict_passes_as_it_is() -> None:
    strategy = calibrated(Told("none"), calibration(), abstain_below=0.9)
    outcome = await strategy.judge(PAIR, Desk())
    assert isinstance(outcome, Undecided)
    assert outcome.why == "unparsed"
    with pytest.raises(ProviderError):
        await calibrated(Told("timeout"), calibration()).judge(PAIR, Desk())


async def test_a_pair_that_a_calibrated_rung_abstains_from_climbs_on() -> None:
    cheap = calibrated(Told("A", confidence=0.5), calibration(), abstain_below=0.9)
    outcome = verdict(await cascade([cheap, Told("B", "strong")]).judge(PAIR, Desk()))
    assert outcome.winner == "B"
    assert [part.why for part in outcome.parts] == ["unparsed", None]


async def test_margin_and_majority_share_come_from_the_marks_and_lead_from_the_scores() -> None:
    vote = committee(panel("A", "A", "B", "B", "A"))
    spec = spec_hash(spec_tree(vote))
    for raw, number in (("confidence", 0.6), ("margin", 0.2), ("majority_share", 0.6)):
        found = calibration(raw=raw, spec=spec)
        outcome = verdict(await calibrated(vote, found).judge(PAIR, Desk()))
        assert outcome.raw_confidence == number
    scores = {"A.total": 0.5, "B.total": 0.75}
    told = calibrated(Told("A", scores=scores), calibration(raw="lead"))
    assert verdict(await told.judge(PAIR, Desk())).raw_confidence == 0.25
    assert raw_of("margin", 0.9, None, {}) is None


def test_a_calibration_of_another_strategy_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(ConfigError) as caught:
        calibrated(Told("A", "other"), calibration())
    says = str(caught.value)
    assert "was fitted on outcomes of told with spec" in says
    assert "set allow_other_spec = true" in says
    assert calibrated(Told("A", "other"), calibration(), allow_other_spec=True).spec()["kind"]
    with pytest.raises(ConfigError, match=r"abstain_below = 1\.5"):
        calibrated(Told("A"), calibration(), 1.5)


def test_the_hash_of_the_map_is_in_the_spec_and_the_date_is_not_in_the_hash() -> None:
    one, other = calibration(), calibration(knots=((0.5, 0.4), (1.0, 0.9)))
    assert one.hash != other.hash
    assert calibration(date="2030-01-01").hash == one.hash
    assert calibrated(Told("A"), one).spec() == {
        "kind": "calibrated",
        "version": "1",
        "calibration": one.hash,
        "abstain_below": None,
        "inner": {"kind": "told", "name": "told"},
    }


def test_a_file_is_read_back_and_a_changed_or_foreign_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cal.json"
    path.write_bytes(msgspec.json.encode(calibration()))
    assert load_calibration(str(path)) == calibration()
    text = path.read_text("utf-8")
    for changed, says in (
        (text.replace("0.4", "0.5"), "does not fit its hash"),
        (text.replace("calibration@1", "calibration@9"), "is of format 'dikast-calibration@9'"),
        ("{}", "is no calibration"),
        ("not json", "is no calibration"),
    ):
        path.write_text(changed, "utf-8")
        with pytest.raises(InputError, match=says):
            load_calibration(str(path))
    with pytest.raises(InputError, match="make a calibration with dikast calibrate"):
        load_calibration(str(tmp_path / "none.json"))


def test_the_node_round_trips_and_is_built_with_the_file_it_names() -> None:
    tree = {
        "kind": "calibrated",
        "calibration": "cal.json",
        "abstain_below": 0.6,
        "allow_other_spec": True,
        "inner": {"kind": "pairwise", "judge": "j"},
    }
    config = parse_strategy(tree)
    assert json.loads(msgspec.json.encode(config)) == tree
    asked: list[str] = []

    def load(name: str) -> Calibration:
        asked.append(name)
        return calibration()

    judges = {"j": Judge(name="j", provider="p", model="m")}
    spec = build(config, judges, seed=0, loaders=Loaders(calibration=load)).spec()
    assert asked == ["cal.json"]
    assert spec["calibration"] == calibration().hash
