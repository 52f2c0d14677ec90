"""SESSE with a real model of half a billion parameters: 50 pairs, from build to evaluate.

Opt-in, a quarter of an hour long: see docs/local-model.md. So small a model is no good judge; what
is tested is that a real model's words go through every stage, and that the reports add up. Prints
the numbers.
"""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dikast.strategies.sesse.library import (
    BuildParams,
    Cluster,
    Library,
    Question,
    Split,
    load_library,
    qid_of,
    save_library,
)
from tests.cli.tools import Cli, rows_of, write_rows
from tests.local_model.conftest import LocalServer
from tests.local_model.test_position_bias import FACTS

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

PAIRS = 50
THEMES = {
    "facts": (
        "the request asks for a fact",
        ("stating the right fact", "avoiding a false statement"),
    ),
    "reckoning": (
        "the request asks for a calculation",
        ("arriving at the right number", "reckoning without a mistake"),
    ),
}


def pairs() -> list[dict[str, Any]]:
    """Fifty pairs: each question with the right answer first, then with the wrong one first."""
    out: list[dict[str, Any]] = []
    for number in range(PAIRS):
        question, right, wrong = FACTS[number // 2 % len(FACTS)]
        first, second = (right, wrong) if number % 2 == 0 else (wrong, right)
        out.append(
            {
                "id": f"f{number}",
                "question": question if number < 2 * len(FACTS) else f"Tell me: {question}",
                "response_a": first,
                "response_b": second,
                "label": "A" if number % 2 == 0 else "B",
            }
        )
    return out


def library() -> Library:
    """Two themes, written by hand, of two questions each."""
    return Library(
        judge="by hand",
        params=BuildParams(n_max=2),
        split=Split(seed=0, mine_rows=0, mine_ids_sha=""),
        clusters=tuple(
            Cluster(
                cid=cid,
                label=condition,
                questions=tuple(
                    Question(
                        qid=qid_of(condition, conclusion),
                        condition=condition,
                        conclusion=conclusion,
                    )
                    for conclusion in conclusions
                ),
            )
            for cid, (condition, conclusions) in THEMES.items()
        ),
    )


def configured(path: Path, server: LocalServer, max_tokens: int, strategy: str = "") -> Path:
    """A configuration of the small model, with a `sesse` strategy where one is given."""
    provider = "".join(f"{key} = {json.dumps(value)}\n" for key, value in server.provider().items())
    tree = f'[strategy]\nkind = "sesse"\njudge = "small"\n{strategy}\n' if strategy else ""
    path.write_text(
        f'[providers.local]\n{provider}[judges.small]\nprovider = "local"\n'
        f"model = {json.dumps(server.model)}\nmax_tokens = {max_tokens}\n"
        f"{tree}[run]\nworkers = 1\n",
        "utf-8",
    )
    return path


def real_pairs(data: Path) -> list[dict[str, Any]]:
    """The fifty shortest pairs of LLMBar, so that a thread can write about them in minutes."""
    with gzip.open(data / "pairs" / "llmbar.jsonl.gz", "rt", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = [json.loads(line) for line in file]
    return sorted(rows, key=lambda row: len(json.dumps(row)))[:PAIRS]


def judged(
    cli: Cli, folder: Path, server: LocalServer, name: str, more: str, rows: list[dict[str, Any]]
) -> Path:
    """The outcomes of one way through the tiers."""
    save_library(library(), folder / "lib.json")
    config = configured(
        folder / f"{name}.toml", server, 16, f'library = "lib.json"\nkeep_text = true\n{more}'
    )
    out = folder / f"{name}.jsonl"
    source = write_rows(folder / f"{name}-pairs.jsonl", rows)
    ran = cli("judge", source, "-o", out, "--config", config)
    assert ran.code == 0, ran.err
    return out


def test_tier_1_selects_or_says_that_it_could_not(
    cli: Cli, tmp_path: Path, local_server: LocalServer
) -> None:
    out = judged(cli, tmp_path, local_server, "tier1", "depth = 1", pairs()[:6])
    for row in rows_of(out):
        selected = row["notes"]["selected"]
        assert set(selected) <= set(THEMES)
        assert {vote["cluster"] for vote in row.get("votes", [])} == set(selected)
        if not selected:
            assert row["kind"] == "undecided" or row["notes"]["tie"] == "no_cluster"


def test_fifty_pairs_are_voted_on_and_accounted_for(
    cli: Cli, tmp_path: Path, local_server: LocalServer
) -> None:
    # So small a model hardly ever says that a condition holds: every theme is asked.
    out = judged(
        cli, tmp_path, local_server, "votes", 'tier1 = "off"\norder = "alternate"', pairs()
    )
    rows = rows_of(out)
    assert len({row["id"] for row in rows}) == PAIRS
    assert {row["kind"] for row in rows} <= {"verdict", "undecided"}
    votes = [vote for row in rows for vote in row.get("votes", [])]
    picks = Counter(vote["pick"] for vote in votes)
    assert len(votes) == 4 * PAIRS
    assert set(picks) <= {"A", "B", "na", "none"}
    assert all(vote["usage"]["input"] > 0 and vote["key"] for vote in votes)
    # A vote that was read is what the model wrote; one that was not is nothing else.
    assert all(vote["text"] for vote in votes)
    report = cli("sesse", "evaluate", out, "--json").summary
    figures = report["headline"]
    undecided = sum(row["kind"] == "undecided" for row in rows)
    assert figures["rows"] == PAIRS
    assert figures["sesse"]["n"] + figures["ties"] + figures["no_verdict"] == PAIRS
    assert figures["no_verdict"] == undecided
    print(
        f"\npicks {dict(picks)}; undecided {undecided}; "
        f"ties {figures['ties']} {figures['tie_reasons']}; right {figures['sesse']['hits']} of "
        f"{figures['sesse']['n']}; cached {report['source']['cached_share']}"
    )


def test_the_whole_pipeline_runs_on_fifty_real_pairs(
    cli: Cli, tmp_path: Path, local_server: LocalServer, data: Path
) -> None:
    """Build, tune, judge, evaluate: libraries of the model's own errors, in its own words."""
    source = write_rows(tmp_path / "pairs.jsonl", real_pairs(data))
    asks = configured(tmp_path / "asks.toml", local_server, 400)
    built = cli(
        *("sesse", "build", source, "-o", tmp_path / "lib.json", "--config", asks, "--json"),
        *("--split-dev", 0.6, "--stratify", "--quiet"),
    )
    assert built.code == 0, built.err
    library_of_its_own = load_library(tmp_path / "lib.json")
    questions = sum(len(each.questions) for each in library_of_its_own.clusters)
    rejected = rows_of(tmp_path / "lib.json.work" / "rejected.jsonl")
    admitted = rows_of(tmp_path / "lib.json.work" / "questions.jsonl")
    assert 0 < questions <= len(admitted)
    tuned = cli(
        *("sesse", "tune", tmp_path / "lib.json", source, "-o", tmp_path / "tuned.json"),
        *("--config", asks, "--json", "--quiet", "--keep-all"),
    )
    assert tuned.code == 0, tuned.err
    assert tuned.summary["parent"] == library_of_its_own.hash
    # So small a model hardly ever says that a condition holds: every theme is asked.
    tree = 'library = "tuned.json"\ntier1 = "off"'
    run = configured(tmp_path / "run.toml", local_server, 400, tree)
    out = tmp_path / "out.jsonl"
    ran = cli("judge", source, "-o", out, "--config", run, "--quiet", "--json")
    assert ran.code == 0, ran.err
    assert ran.summary["adds_up"]
    rows = rows_of(out)
    assert len({row["id"] for row in rows}) == len(rows) == PAIRS
    qids = {each.qid for cluster in library_of_its_own.clusters for each in cluster.questions}
    votes = [vote for row in rows for vote in row.get("votes", [])]
    assert len(votes) == PAIRS * sum(
        min(tuned.summary["depth"], len(each.questions)) for each in library_of_its_own.clusters
    )
    assert {vote["question"] for vote in votes} <= qids
    told = cli(
        *("sesse", "evaluate", out, "--json", "--library", tmp_path / "tuned.json"),
        *("--holistic", tmp_path / "tuned.json.work" / "holistic.jsonl"),
        *("--html", tmp_path / "page.html"),
    )
    assert told.code == 0, told.err
    figures = told.summary["headline"]
    assert figures["rows"] == PAIRS
    assert figures["sesse"]["n"] + figures["ties"] + figures["no_verdict"] == PAIRS
    assert (tmp_path / "page.html").stat().st_size > 0
    print(
        f"\nadmitted {len(admitted)} of {len(admitted) + len(rejected)} drafts "
        f"{dict(Counter(row['why'] for row in rejected))}; {questions} questions in "
        f"{len(library_of_its_own.clusters)} clusters; depth {tuned.summary['depth']}; "
        f"{len(votes)} votes {dict(Counter(vote['pick'] for vote in votes))}; "
        f"ties {figures['ties']} {figures['tie_reasons']}; right {figures['sesse']['hits']} of "
        f"{figures['sesse']['n']}"
    )
