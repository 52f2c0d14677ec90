"""`dikast check --injection`: a credulous judge is found, a robust one passes, noise is told."""

from pathlib import Path
from typing import Any

import pytest

from dikast.commands.injection_plant import Reaction, plant, shipped_injections, tally
from dikast.engine.model import Pair
from tests.cli.tools import Cli, pair, write_rows

pytestmark = pytest.mark.realtime


def config(folder: Path, **settings: object) -> Path:
    lines = [f"{name} = {value!r}" for name, value in settings.items()]
    path = folder / "judge.toml"
    path.write_text(
        '[providers.made_up]\nkind = "simulated"\nrequests_per_min = 6000000\n'
        + "\n".join(lines)
        + "\n"
        '[judges.made_up]\nprovider = "made_up"\nmodel = "m"\n'
    )
    return path


def check(cli: Cli, path: Path, *words: object) -> tuple[int, dict[str, Any], str]:
    ran = cli("check", "--config", path, "--injection", "--clean-pairs", 6, *words, "--json")
    return ran.code, ran.summary, ran.err


@pytest.mark.parametrize("strategy", ["single", "swap", "score"])
def test_a_robust_judge_passes_and_a_credulous_one_does_not(
    cli: Cli, tmp_path: Path, strategy: str
) -> None:
    words = ("--strategy", strategy, "--max-flip-rate", 0.05)

    code, found, _ = check(cli, config(tmp_path, accuracy=1.0), *words)

    assert code == 0
    assert (found["all"]["toward"], found["all"]["away"]) == (0, 0)
    assert found["all"]["could"] == found["all"]["asked"] / 2  # one side of each pair has won
    assert found["gate"] == "passed"

    code, found, err = check(cli, config(tmp_path, accuracy=1.0, obeys_injection=1.0), *words)

    assert code == 4
    assert found["all"]["rate"] == 1.0
    assert found["placebo"]["rate"] == 0.0
    assert len(err.splitlines()) == 2
    assert "100.0% of the verdicts that could move went to the planted side" in err


def test_half_a_credulous_judge_is_found_in_every_family_and_language(
    cli: Cli, tmp_path: Path
) -> None:
    path = config(tmp_path, accuracy=1.0, obeys_injection=0.5)

    code, found, _ = check(cli, path, "--strategy", "single")

    assert code == 0  # without a gate it only tells
    assert found["all"]["interval"]["low"] < 0.5 < found["all"]["interval"]["high"]
    assert len(found["families"]) >= 6
    assert {"en", "zh", "de", "es"} <= found["languages"].keys()
    for each in (*found["families"].values(), *found["languages"].values()):
        assert 0 < each["interval"]["low"] < each["rate"] < each["interval"]["high"]
    families = sum(each["asked"] for each in found["families"].values())
    languages = sum(each["asked"] for each in found["languages"].values())
    assert families == languages == found["all"]["asked"]
    assert found["beyond_placebo_interval"]["low"] > 0.3


def test_an_unsteady_judge_is_not_called_obedient(cli: Cli, tmp_path: Path) -> None:
    path = config(tmp_path, accuracy=0.6, consistency=0.0)

    ran = cli("check", "--config", path, "--injection")

    assert ran.code == 0
    assert "no sign that the judge obeys" in ran.out
    assert "SIMULATED" in ran.out.upper()


def test_verdicts_that_cannot_be_read_are_counted_and_are_no_flips(
    cli: Cli, tmp_path: Path
) -> None:
    path = config(tmp_path, accuracy=1.0, garbage_rate=0.3)

    _, found, _ = check(cli, path, "--strategy", "single")

    whole = found["all"]
    assert whole["toward"] == 0
    assert whole["unread"] > 0
    assert whole["judged"] + whole["unread"] + whole["no_control"] == whole["asked"]


def test_a_judge_of_whom_nothing_can_be_read_does_not_pass_the_gate(
    cli: Cli, tmp_path: Path
) -> None:
    path = config(tmp_path, garbage_rate=1.0)

    code, found, err = check(cli, path, "--max-flip-rate", 0.5)

    assert code == 4
    assert found["all"]["rate"] is None
    assert "nothing says that the judge holds" in err


def test_failed_judgements_are_told_by_the_status(cli: Cli, tmp_path: Path) -> None:
    path = config(tmp_path, accuracy=1.0, error_rate=0.5)
    text = path.read_text()
    path.write_text(text + "[run.retry]\nattempts = 1\n")

    code, found, _ = check(cli, path, "--strategy", "single")

    assert code == 1
    assert 0 < found["failed"] < found["judgements"]


def test_pairs_of_ones_own_are_planted_into(cli: Cli, tmp_path: Path) -> None:
    rows = [pair(n, label="A" if n % 2 else "B") for n in range(8)] + [pair(9)]
    source = write_rows(tmp_path / "own.jsonl", rows)

    code, found, _ = check(cli, config(tmp_path, accuracy=1.0), "--clean", source)
    assert (code, found["clean_pairs"]) == (0, 6)

    ran = cli(
        *("check", "--config", config(tmp_path), "--injection"),
        *("--clean", source, "--clean-pairs", 9),
    )
    assert ran.code == 2
    assert "only 8 pairs have a label A or B" in ran.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--injection", "--max-flip-rate", "2"), "must lie between 0 and 1"),
        (("--injection", "--clean-pairs", "1"), "must be at least 2"),
        (("--injection", "--offline"), "cannot be done with --offline"),
        (("--max-flip-rate", "0.1"), "belong to --injection"),
    ],
)
def test_words_that_make_no_sense_are_one_sentence(
    cli: Cli, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    ran = cli("check", "--config", config(tmp_path), *words)
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_recorded_judges_are_refused(cli: Cli, tmp_path: Path) -> None:
    records = write_rows(tmp_path / "r.jsonl", [])
    ran = cli("check", "--judge", f"replay:{records}?t:m", "--injection")
    assert ran.code == 2
    assert "recorded answers cannot be asked about planted text" in ran.err


def test_a_budget_ends_the_check_with_its_own_status(cli: Cli, tmp_path: Path) -> None:
    path = config(tmp_path, accuracy=1.0)
    path.write_text(path.read_text() + "prices = { input = 1000.0, output = 1000.0 }\n")
    ran = cli("check", "--config", path, "--injection", "--budget-usd", 5)
    assert ran.code == 3
    assert "budget" in ran.err


def test_each_text_is_planted_once_into_each_answer_and_the_rest_stays() -> None:
    clean = Pair(id="x", question="q", response_a="left", response_b="right", label="A")
    texts = shipped_injections()
    planted = list(plant([clean], texts))
    assert len(planted) == 2 * len(texts)
    for each in planted:
        shown = each.pair
        own, other = (
            (shown.response_a, shown.response_b)
            if each.side == "A"
            else (shown.response_b, shown.response_a)
        )
        assert other in ("left", "right")
        assert own not in ("left", "right")
        assert own.startswith(("left", "right")) or own.endswith(("left", "right"))
        assert (shown.id, shown.question, shown.label) == ("x", "q", "A")


def test_a_tally_adds_up_and_only_counts_what_could_move() -> None:
    moves = [(-1, 1), (-1, 0), (0, 1), (-1, -1), (1, 1), (1, -1), (0, -1), (None, 1), (0, None)]
    found = tally([Reaction("f", "en", 0, control, planted) for control, planted in moves])
    assert (found.asked, found.judged, found.could) == (9, 7, 5)
    assert (found.toward, found.won, found.away) == (3, 2, 2)
    assert (found.unread, found.no_control) == (1, 1)
