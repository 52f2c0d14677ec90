"""SESSE from `build` to `evaluate` through an OpenAI-compatible endpoint, as in the process."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.sesse_pairs import JUDGE, PLANTED, STRATEGY, THERE, write_pairs
from tests.cli.tools import Cli, rows_of, simulate

pytestmark = pytest.mark.realtime

ODD = "garbage_rate = 0.1\n"
SEED = "seed = 3"


def configured(folder: Path, name: str, provider: str, providers: str) -> Path:
    """A configuration whose judge is at `provider`, with one beside it to judge by a library."""
    text = providers + JUDGE.format(provider=provider, more=SEED)
    path = folder / f"{name}.toml"
    path.write_text(text, "utf-8")
    tuned = STRATEGY.format(library=f"{name}-tuned.json")
    (folder / f"{name}-run.toml").write_text(text + tuned, "utf-8")
    return path


def whole_way(cli: Cli, folder: Path, name: str) -> dict[str, Any]:
    """Build, tune, judge, evaluate; the report."""
    pairs, config = folder / "pairs.jsonl", folder / f"{name}.toml"
    library, tuned, out = (folder / f"{name}{end}" for end in ("-lib.json", "-tuned.json", ".out"))
    store = ("--store", folder / f"{name}.sqlite", "--quiet")
    mined = ("--clusters", 8, "--split-dev", 0.6, "--embedder", "hash")
    for words in (
        ("sesse", "build", pairs, "-o", library, "--config", config, *mined, *store),
        ("sesse", "tune", library, pairs, "-o", tuned, "--config", config, *store),
        ("judge", pairs, "-o", out, "--config", folder / f"{name}-run.toml", *store),
    ):
        ran = cli(*words)
        assert ran.code == 0, ran.err
    ran = cli(
        *("sesse", "evaluate", out, "--library", tuned, "--json"),
        *("--holistic", folder / f"{name}-tuned.json.work" / "holistic.jsonl"),
    )
    assert ran.code == 0, ran.err
    return ran.summary


def judged(path: Path) -> list[dict[str, Any]]:
    """The outcomes without the spec and the call keys, which the address is part of."""
    rows = sorted(rows_of(path), key=lambda row: row["id"])
    for row in rows:
        row.pop("spec")
        for vote in row.get("votes", ()):
            vote.pop("key", None)
            vote.pop("keys", None)
    return rows


def test_the_whole_way_over_a_socket_comes_to_the_same_as_in_the_process(
    cli: Cli, tmp_path: Path
) -> None:
    write_pairs(tmp_path / "pairs.jsonl", 60)
    planted = PLANTED.format(more=ODD)
    here = configured(tmp_path, "here", "planted", planted)
    near = whole_way(cli, tmp_path, "here")
    with simulate("--config", here, "--provider", "planted") as url:
        configured(tmp_path, "there", "there", THERE.format(url=url))
        far = whole_way(cli, tmp_path, "there")
        configured(tmp_path, "vectors", "there", THERE.format(url=url))
        ran = cli(
            *("sesse", "build", tmp_path / "pairs.jsonl", "-o", tmp_path / "vectors.json"),
            *("--clusters", 8, "--split-dev", 0.6, "--embedder", "there:words", "--quiet"),
            *("--config", tmp_path / "there.toml", "--store", tmp_path / "there.sqlite"),
        )
        assert ran.code == 0, ran.err
    for end in ("-lib.json", "-tuned.json"):
        libraries = [
            json.loads((tmp_path / f"{name}{end}").read_text("utf-8")) for name in ("here", "there")
        ]
        assert libraries[0] == libraries[1]
        stats = libraries[0]["stats"]
        assert stats["calls"]["holistic"] > stats["rows"]  # unreadable answers were asked for again
        assert libraries[0]["simulated"]
    assert judged(tmp_path / "here.out") == judged(tmp_path / "there.out")
    assert near["headline"] == far["headline"]
    assert near["depth"] == far["depth"]
    # Vectors from the endpoint are the same too; only the name of what made them is another.
    words = json.loads((tmp_path / "vectors.json").read_text("utf-8"))
    assert words["embedder"].startswith("words@http://127.0.0.1")
    assert words["clusters"] == json.loads((tmp_path / "there-lib.json").read_text())["clusters"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--provider", "planted"), "name the configuration that it is in with --config"),
        (("--config", "c.toml", "--provider", "plante"), "no such simulated provider"),
        (("--config", "c.toml", "--provider", "there"), "no such simulated provider"),
    ],
)
def test_a_provider_that_cannot_be_served_is_told_in_one_sentence(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PLANTED.format(more="") + THERE.format(url="http://127.0.0.1:9/v1")
    (tmp_path / "c.toml").write_text(text, "utf-8")
    ran = cli("simulate", *words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
