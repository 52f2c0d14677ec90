"""What a command would overwrite, could not write or could not use is refused before it begins."""

import shutil
from pathlib import Path

import pytest

from tests.cli.tools import DEMO, Cli

JUDGE = ("--judge", "simulated:careful")


@pytest.mark.parametrize(
    "words",
    [
        ("judge", "IN", "-o", "IN", "--fresh", *JUDGE),
        ("judge", "IN", "-o", "OUT", "--sink", "optional:IN", *JUDGE),
        ("convert", "IN", "-o", "IN"),
        ("convert", "IN", "-o", "LINK"),
        ("calibrate", "IN", "-o", "IN"),
        ("calibrate", "OTHER", "--labels", "IN", "-o", "IN"),
        ("weights", "OTHER", "IN", "-o", "IN"),
        ("anchors", "init", "IN", "-o", "IN", "--name", "n"),
        ("anchors", "run", "IN", "-o", "IN", *JUDGE),
        ("sesse", "build", "IN", "-o", "IN", *JUDGE),
        ("sesse", "tune", "IN", "OTHER", "-o", "IN", *JUDGE),
        ("sesse", "check", "OTHER", "IN", "--record", "IN", *JUDGE),
        ("sesse", "evaluate", "IN", "--html", "IN"),
        ("preferences", "fit", "IN", "-o", "IN", *JUDGE),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_command_writes_over_what_it_reads(
    cli: Cli, tmp_path: Path, words: tuple[str, ...]
) -> None:
    files = {name: tmp_path / f"{name}.json" for name in ("IN", "OTHER", "OUT", "LINK")}
    for name in ("IN", "OTHER"):
        shutil.copy(DEMO, files[name])
    files["LINK"].symlink_to(files["IN"])
    before = DEMO.read_bytes()
    named = [
        str(files.get(word, word)).replace("optional:IN", f"optional:{files['IN']}")
        for word in words
    ]
    ran = cli(*named)
    assert ran.code == 2
    assert "would be overwritten; name another file" in ran.err
    assert files["IN"].read_bytes() == before
    assert not files["OUT"].exists()


def test_an_output_is_written_once_and_has_a_name(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    twice = cli("judge", DEMO, "-o", out, "--sink", out, *JUDGE)
    assert (twice.code, "is written twice" in twice.err) == (2, True)
    assert not out.exists()
    for words in (("weights", DEMO, "-o", ""), ("preferences", "fit", DEMO, "-o", "", *JUDGE)):
        ran = cli(*words)
        assert (ran.code, "has no name" in ran.err) == (2, True)


def test_a_run_on_anchors_is_not_paid_for_without_a_place_to_write_it(
    cli: Cli, tmp_path: Path
) -> None:
    anchors = tmp_path / "anchors.json"
    assert cli("anchors", "init", DEMO, "-o", anchors, "--name", "n", "--size", 10).code == 0
    ran = cli("anchors", "run", anchors, "-o", tmp_path / "no" / "run.json", *JUDGE)
    assert ran.code == 2
    assert "there is no folder" in ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("agree", DEMO, "--seed", -1),
        ("judge", DEMO, "-o", "OUT", "--seed", -1, *JUDGE),
        ("sesse", "build", DEMO, "-o", "OUT", "--seed", 2**63, *JUDGE),
        ("preferences", "fit", DEMO, "-o", "OUT", "--seed", -1, *JUDGE),
        ("calibrate", DEMO, "-o", "OUT", "--date", "yesterday"),
        ("rank", DEMO, "--draws", 10**12),
        ("rank", DEMO, "--next", 10**9),
    ],
    ids=lambda words: f"{words[0]} {words[-2]}",
)
def test_numbers_that_no_command_could_use_are_refused_by_name(
    cli: Cli, tmp_path: Path, words: tuple[object, ...]
) -> None:
    ran = cli(*(tmp_path / "out.json" if word == "OUT" else word for word in words))
    assert ran.code == 2
    option = next(
        str(word) for word in words if str(word) in ("--seed", "--date", "--draws", "--next")
    )
    assert ran.err.startswith(f"dikast: error: {option}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("agree", "IN"),
        ("rank", "IN"),
        ("calibrate", "IN", "-o", "OUT"),
        ("sesse", "show", "IN"),
        ("preferences", "show", "IN"),
        ("anchors", "check", "IN", "--baseline", "IN"),
        ("rank", DEMO.parents[2] / "examples" / "battles.csv", "--against", "IN"),
    ],
    ids=lambda words: " ".join(map(str, words[:2]))[:20],
)
def test_a_file_nested_without_end_is_bad_input_and_no_defect(
    cli: Cli, tmp_path: Path, words: tuple[object, ...]
) -> None:
    path = tmp_path / "in.json"
    path.write_text('{"x": ' + "[" * 50_000 + "]" * 50_000 + "}\n", "utf-8")
    named = {"IN": path, "OUT": tmp_path / "out.json"}
    ran = cli(*(named.get(str(word), word) for word in words))
    assert ran.code == 2
    assert "in.json" in ran.err
    assert "defect" not in ran.err


@pytest.mark.parametrize("name", ["out.csv", "OUT.TSV", "out.arrow", "out.jsonl.zst"])
def test_an_output_whose_name_promises_what_a_run_does_not_write_is_refused(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    ran = cli("judge", DEMO, "-o", tmp_path / name, *JUDGE)
    assert (ran.code, "dikast convert OUT.jsonl -o" in ran.err) == (2, True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("judge", "x", "--colums", "a=b"), "--colums a=b; did you mean --columns?; see dikast"),
        (("sesse", "build", "x", "-o", "y", "--embeder=hash"), "did you mean --embedder?"),
        (("agree", "x", "--zzzz"), "unrecognized arguments: --zzzz; see dikast agree --help"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_an_unknown_option_is_named_with_its_command_and_the_nearest(
    cli: Cli, words: tuple[str, ...], said: str
) -> None:
    ran = cli(*words)
    assert (ran.code, said in ran.err) == (2, True)
