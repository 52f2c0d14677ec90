"""The first page, and what the page of the command line shows: the commands print what is shown."""

import shutil
from pathlib import Path

import pytest

from tests.cli.test_docs_combinators import printed, shown
from tests.cli.tools import DEMO, Cli, rows_of

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.realtime


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples, as in a clone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none is asked")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "api" / "data").mkdir(parents=True)
    shutil.copy(DEMO, tmp_path / "api" / "data")
    return tmp_path


@pytest.mark.parametrize(("page", "least"), [("quickstart.md", 6), ("cli.md", 2)])
def test_the_commands_of_a_page_print_what_it_shows(
    cli: Cli, here: Path, page: str, least: int
) -> None:
    commands = shown(page)
    assert len(commands) >= least
    for command, lines in commands:
        program, *words = command.split()
        if program == "cat":
            (here / words[0]).write_text("".join(f"{line}\n" for line in lines), "utf-8")
            continue
        assert program == "dikast"
        ran = cli(*words)
        assert ran.code == 0, ran.err
        assert printed(lines, ran.out + ran.err), f"{command}\n{ran.out}{ran.err}"


def test_the_first_page_shows_the_table_as_it_is_and_its_report_holds_the_texts(
    cli: Cli, here: Path
) -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text("utf-8")
    table = (here / "examples" / "answers.csv").read_text("utf-8").splitlines()
    assert "\n".join(table[:2]) in page
    columns = "question=prompt,response_a=reply_1,response_b=reply_2,id=nr"
    out = here / "v.jsonl"
    judged = cli(
        "judge", "examples/answers.csv", "-o", out, "--columns", columns,
        "--judge", "simulated:careful",
    )  # fmt: skip
    assert judged.code == 0
    assert len(rows_of(out)) == len(table) - 1

    command = next(each for each, _ in shown("quickstart.md") if " report " in each)
    words = ["v.jsonl" if each == "verdicts.jsonl" else each for each in command.split()[1:]]
    assert cli(*words).code == 0
    assert "Name the capital of Australia." in (here / "report.html").read_text("utf-8")


def test_check_says_what_the_pairs_will_cost_at_most(cli: Cli, here: Path) -> None:
    config = here / "c.toml"
    config.write_text(
        '[providers.p]\nkind = "simulated"\n[judges.j]\nprovider = "p"\nmodel = "careful"\n'
        "max_tokens = 64\nprices = { input = 10.0, output = 20.0 }\n"
    )
    told = cli("check", DEMO, "--config", config, "--json").summary["cost"]
    ran = cli("judge", DEMO, "-o", here / "o.jsonl", "--config", config, "--json").summary

    assert (told["rows"], told["sampled"], told["rows_are_all"]) == (249, 200, True)
    assert told["calls"] == ran["ledger"]["calls"] == 498
    assert told["tokens_out_most"] == 498 * 64
    assert told["usd_read"] == pytest.approx(told["tokens_in"] * 10e-6, rel=1e-4)
    assert told["usd_most"] == pytest.approx(told["usd_read"] + 498 * 64 * 20e-6, rel=1e-4)
    assert told["usd_most"] > ran["ledger"]["spent_usd"]
    assert 1.0 < told["tokens_in"] / ran["ledger"]["usage"]["input"] < 2.0  # a high guess

    few = cli("check", DEMO, "--config", config, "--limit", 10, "--json").summary["cost"]
    assert (few["rows"], few["calls"]) == (10, 20)


def test_check_tells_bad_rows_unknown_prices_and_inputs_that_are_not_there(
    cli: Cli, here: Path
) -> None:
    pairs = here / "p.jsonl"
    good = DEMO.read_bytes().splitlines()[0]
    pairs.write_bytes(good + b"\n" + good + b"\n{half\n")
    words = ("check", "--judge", "http://127.0.0.1:1/v1:m", "--offline")
    ran = cli(*words, pairs)
    gone = cli(*words, here / "gone.jsonl")

    assert ran.code == 0
    assert "1 pairs, 2 bad rows left out: about 2 calls" in ran.out
    assert "cost unknown: a judge has no price; write [judges.NAME.prices]" in ran.out
    assert gone.code == 2
    assert "gone.jsonl: there is no such file" in gone.out
