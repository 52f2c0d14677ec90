"""A real small model writes preferences and judges with them: the whole way, with real words.

Opt-in, minutes long: see docs/local-model.md. Forty pairs of a person who takes the short answer.
Half a billion parameters are no judge of taste: what is held is that every call is answered, that
the figures add up, and that the report falls back where nothing is gained.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from dikast.strategies.preferences import load_profile
from tests.cli.tools import Cli, write_rows
from tests.local_model.conftest import LocalServer

pytestmark = [pytest.mark.realtime, pytest.mark.slow]
TEMPLATE = (
    Path(__file__).resolve().parents[2] / "examples" / "templates" / "letter-preferences.toml"
)
PAIRS, DEVELOPMENT, HELD_OUT = 40, 4, 12
TOWNS = ("Paris", "Rome", "Oslo", "Cairo", "Lima", "Tokyo", "Quito", "Delhi", "Bern", "Minsk")
ASKED = ("Is {} large?", "Is {} old?", "Is it warm in {}?", "Is {} worth a visit?")


def pairs() -> list[dict[str, Any]]:
    """A short and a long answer to each question; ann takes the short one."""
    rows = []
    for number in range(PAIRS):
        question = ASKED[number // len(TOWNS)].format(TOWNS[number % len(TOWNS)])
        short = "Yes, it is."
        long = (
            "Well, that depends on how one looks at it, and people have held different views, but "
            "on the whole, and taking one thing with another, one may say that yes, it is."
        )
        first, second = (short, long) if number % 2 else (long, short)
        label = "A" if number % 2 else "B"
        rows.append(
            {"id": f"t{number}", "question": question, "response_a": first, "response_b": second}
            | {"votes": [{"annotator": "ann", "label": label}]}
        )
    return rows


def test_a_real_model_writes_sentences_and_judges_with_them(
    local_server: LocalServer, tmp_path: Path, cli: Cli
) -> None:
    provider = local_server.provider().items()
    lines = ["[providers.local]", *(f"{key} = {json.dumps(value)}" for key, value in provider)]
    for name, tokens in (("small", 4), ("writer", 60)):
        lines += [f"[judges.{name}]", 'provider = "local"', f'model = "{local_server.model}"']
        lines += [f"max_tokens = {tokens}"]
    config = tmp_path / "c.toml"
    config.write_text("\n".join(lines), "utf-8")
    labels = write_rows(tmp_path / "labels.jsonl", pairs())
    given = ("--config", config, "--judge", "small", "--template", TEMPLATE, "--quiet", "--json")
    ran = cli(
        *("preferences", "fit", labels, "-o", tmp_path / "p", *given, "--writer", "writer"),
        *("--development", DEVELOPMENT, "--min-labels", 8, "--shuffles", 19),
    )
    assert ran.code == 0, ran.err
    topic = ran.summary["people"]["ann"]["topics"][""]
    assert topic["pairs"] == DEVELOPMENT
    assert topic["unread"] <= 0.2
    profile = tmp_path / "p" / "ann.json"
    for each in load_profile(str(profile)).entries[0].preferences:
        print(f"{each.id}: {each.text}")
    found = cli(
        *("preferences", "evaluate", labels, "--profile", profile, *given, "--limit", HELD_OUT)
    )
    assert found.code == 0, found.err
    whole = next(each for each in found.summary["measured"] if each["topic"] == "all")
    for arm in whole["arms"]:
        print(arm["name"], arm["accuracy"], "bias", arm["positions"]["position_bias"]["value"])
        assert arm["accuracy"]["pairs"] + arm["accuracy"]["left_out"] == HELD_OUT
    gains = {arm["name"]: arm["gain"] for arm in whole["arms"]}
    if topic["use"] == "plain":
        assert gains["profile as it stands"]["value"] == 0
