"""SESSE with a real model of half a billion parameters: 50 pairs, every vote accounted for.

Opt-in, minutes long: see docs/local-model.md. So small a model is no good judge; what is tested is
that a real model's words go through both tiers, and that the report adds up. Prints the numbers.
"""

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


def judged(
    cli: Cli, folder: Path, server: LocalServer, name: str, more: str, rows: list[dict[str, Any]]
) -> Path:
    """The outcomes of one way through the tiers."""
    save_library(library(), folder / "lib.json")
    provider = "".join(f"{key} = {json.dumps(value)}\n" for key, value in server.provider().items())
    config = folder / f"{name}.toml"
    config.write_text(
        f'[providers.local]\n{provider}[judges.small]\nprovider = "local"\n'
        f"model = {json.dumps(server.model)}\nmax_tokens = 16\n"
        '[strategy]\nkind = "sesse"\njudge = "small"\nlibrary = "lib.json"\nkeep_text = true\n'
        f"{more}\n[run]\nworkers = 1\n",
        "utf-8",
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
