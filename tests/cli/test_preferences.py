"""`dikast preferences` from the command line: fit, evaluate, edit, judge with it, delete."""

import asyncio
import json
import random
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dikast.cli import build_parser
from dikast.commands.preferences_calls import Setup
from dikast.commands.preferences_fit import FEW_SHOT, ONE_PROMPT, Topic, columns_of
from dikast.engine.model import Call, Completion, Pair
from dikast.strategies.preferences import (
    Labelled,
    Preference,
    Profile,
    Split,
    load_profile,
)
from tests.cli.tools import Cli, rows_of, write_rows

CONFIG = """
[providers.tastes]
kind = "simulated_tastes"
latency_s = {latency_s}
garbage_rate = {garbage_rate}
position_bias = {position_bias}
noise = {noise}
concurrency_start = 64

[judges.reader]
provider = "tastes"
model = "reader"
"""
WORDS = ("time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child")


def text(rng: random.Random, words: int, bullets: int) -> str:
    body = " ".join(rng.choice(WORDS) for _ in range(words))
    return body + "".join(f"\n- {rng.choice(WORDS)}" for _ in range(bullets))


def pairs_of(count: int, *, seed: int = 1) -> list[dict[str, Any]]:
    """Answers that differ in length and in lists; ann takes the shorter, bob the one with lists."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        sizes = [(rng.randint(10, 200), rng.choice((0, 6))) for _ in "ab"]
        while sizes[0][1] == sizes[1][1] or not abs(sizes[0][0] / sizes[1][0] - 1) > 0.3:
            sizes = [(rng.randint(10, 200), rng.choice((0, 6))) for _ in "ab"]
        brief = "A" if sizes[0][0] < sizes[1][0] else "B"
        lists = "A" if sizes[0][1] > sizes[1][1] else "B"
        said = {"ann": brief, "bob": lists}
        rows.append(
            {
                "id": f"p{number}",
                "question": f"question {number // 3}",
                "response_a": text(rng, *sizes[0]),
                "response_b": text(rng, *sizes[1]),
                "category": f"topic {number // 3 % 2}",
                "votes": [{"annotator": who, "label": label} for who, label in said.items()],
            }
        )
    return rows


class Place:
    """A folder with labelled pairs and a configuration."""

    def __init__(self, folder: Path, cli: Cli) -> None:
        self.folder = folder
        self.cli = cli
        self.pairs = write_rows(folder / "pairs.jsonl", pairs_of(48))
        self.configure()

    def configure(self, **more: float) -> None:
        given = {"latency_s": 0, "garbage_rate": 0, "position_bias": 0, "noise": 0.3} | more
        (self.folder / "c.toml").write_text(CONFIG.format(**given), "utf-8")

    def __call__(self, action: str, *words: object) -> Any:
        return self.cli("preferences", action, *words)

    def asking(self, action: str, *words: object) -> Any:
        return self(
            action, self.pairs, "--config", self.folder / "c.toml", "--quiet", "--json", *words
        )

    def fit(self, *words: object) -> Any:
        return self.asking("fit", "-o", self.folder / "p", "--shuffles", 19, *words)

    def profile(self, person: str) -> Path:
        return self.folder / "p" / f"{person}.json"


@pytest.fixture
def place(tmp_path: Path, cli: Cli) -> Place:
    return Place(tmp_path, cli)


def test_tastes_that_differ_become_profiles_that_judge_better_than_the_plain_judge(
    place: Place,
) -> None:
    ran = place.fit()
    assert ran.code == 0, ran.err
    people = ran.summary["people"]
    assert sorted(people) == ["ann", "bob"]
    entry = load_profile(str(place.profile("ann"))).entries[0]
    assert entry.use == "preferences"
    assert any("brief" in each.text for each in entry.voting())
    topic = people["ann"]["topics"][""]
    arms = {arm["name"]: arm for arm in topic["arms"]}
    assert len(arms) == 6
    assert arms["chosen set"]["accuracy"]["value"] > arms["plain judge"]["accuracy"]["value"] + 0.3
    assert topic["shuffled_p"] <= 0.1
    assert people["ann"]["left_out"]["contradictory"] == []


def test_a_dry_run_says_how_many_calls_there_will_be_and_asks_none(place: Place) -> None:
    dry = place(
        "fit",
        place.pairs,
        "-o",
        place.folder / "p",
        "--config",
        place.folder / "c.toml",
        "--dry-run",
    )
    assert dry.code == 0
    assert "ann: 12 development pairs, 30 held out, 13 writer calls, 384 judge calls" in dry.out
    assert not (place.folder / "p").exists()
    spent = place.fit("--only", "ann").summary["people"]["ann"]
    assert spent["calls"] == 13 + 384


def test_a_second_fit_comes_from_the_store_with_the_same_figures(place: Place) -> None:
    first = place.fit().summary["people"]
    second = place.fit().summary["people"]
    for person in ("ann", "bob"):
        assert second[person]["stored_calls"] == second[person]["calls"] == first[person]["calls"]
        assert second[person]["topics"] == first[person]["topics"]
        assert second[person]["version"] == 2


def test_no_development_prompt_is_in_a_figure_of_the_evaluation(place: Place) -> None:
    place.fit()
    ran = place.asking("evaluate", "--profile", place.profile("ann"), "--ablations", "--transfer")
    assert ran.code == 0, ran.err
    entry = load_profile(str(place.profile("ann"))).entries[0]
    rows = {row["id"]: row for row in rows_of(place.pairs)}
    prompts = {rows[pair]["question"] for pair in entry.development}
    fresh = [row for row in rows.values() if row["question"] not in prompts]
    counts = ran.summary["pairs"][str(place.profile("ann"))]
    assert counts == {"held_out": len(fresh), "on_development": 48 - len(fresh)}
    whole = next(each for each in ran.summary["measured"] if each["topic"] == "all")
    arms = {arm["name"]: arm for arm in whole["arms"]}
    assert {arm["accuracy"]["pairs"] for arm in arms.values()} == {len(fresh)}
    assert arms["profile as it stands"]["gain"]["interval"]["low"] > 0
    assert {each["rule"] for each in ran.summary["ablations"]["ann"]} >= {"all preferences vote"}
    assert ran.summary["people"][0]["agreement"]["pairs"] == 48
    split = [
        arms["plain judge"]["positions"][name]
        for name in ("consistent", "always_first", "always_second", "level_or_missing")
    ]
    assert sum(split) == len(fresh)


def test_topics_get_entries_of_their_own_and_are_tried_on_each_other(place: Place) -> None:
    place.fit("--by-topic", "--development", 6, "--min-labels", 8)
    profile = load_profile(str(place.profile("bob")))
    assert [entry.topic for entry in profile.entries] == ["topic 0", "topic 1"]
    ran = place.asking("evaluate", "--profile", place.profile("bob"), "--transfer")
    across = {(each["entry"], each["topic"]) for each in ran.summary["transfer"]}
    assert across == {(f"topic {a}", f"topic {b}") for a in (0, 1) for b in (0, 1)}


def test_two_profiles_of_one_person_are_compared_on_pairs_neither_was_fitted_on(
    place: Place,
) -> None:
    place.fit("--only", "ann")
    other = place.folder / "other"
    assert place.asking("fit", "-o", other, "--seed", 5, "--only", "ann", "--weighted").code == 0
    ran = place.asking(
        "evaluate", "--profile", place.profile("ann"), "--profile", other / "ann.json"
    )
    (compared,) = ran.summary["profiles_compared"]
    development = {
        each["question"]
        for path in (place.profile("ann"), other / "ann.json")
        for each in rows_of(place.pairs)
        if each["id"] in load_profile(str(path)).entries[0].development
    }
    fresh = [row for row in rows_of(place.pairs) if row["question"] not in development]
    assert compared["difference"]["pairs"] == len(fresh)


def test_a_profile_judges_pairs_like_any_strategy(place: Place) -> None:
    place.fit("--only", "ann")
    config = place.folder / "judge.toml"
    base = (place.folder / "c.toml").read_text("utf-8")
    strategy = '[strategy]\nkind = "preferences"\njudge = "reader"\nprofile = "p/ann.json"\n'
    config.write_text(base + strategy + "rationale = true\n", "utf-8")
    out = place.folder / "out.jsonl"
    ran = place.cli("judge", place.pairs, "-o", out, "--config", config, "--quiet")
    assert ran.code == 0, ran.err
    rows = rows_of(out)
    wanted = {row["id"]: row["votes"][0]["label"] for row in rows_of(place.pairs)}
    right = sum(row["winner"] == wanted[row["id"]] for row in rows)
    assert right > 40
    assert {row["basis"] for row in rows} == {"votes"}
    assert all(isinstance(row["consistent"], bool) for row in rows)
    assert "Prefers" not in out.read_text("utf-8")
    checked = place.cli("check", "--config", config, "--offline", "--json").summary
    voting = len(load_profile(str(place.profile("ann"))).entries[0].voting())
    assert checked["calls_per_pair"] == {
        "min": 2 * voting,
        "expected": 2 * voting,
        "max": 2 * voting,
    }


def edited(place: Place, *words: str) -> Profile:
    ran = place("edit", place.profile("ann"), *words)
    assert ran.code == 0, ran.err
    return load_profile(str(place.profile("ann")))


def test_what_a_person_pins_writes_and_deletes_survives_a_new_fit(place: Place) -> None:
    place.fit("--only", "ann")
    edited(place, "--pin", "p2", "--delete", "p3", "--write", "Prefers a dry wit.")
    before = {
        each.id: each for each in load_profile(str(place.profile("ann"))).entries[0].preferences
    }
    ran = place.fit("--only", "ann")
    after = load_profile(str(place.profile("ann")))
    kept = {each.id: each for each in after.entries[0].preferences}
    assert after.version == 3
    assert kept["p2"].pinned
    assert kept["p2"].votes
    assert kept["p2"].text == before["p2"].text
    assert kept["w1"].text == "Prefers a dry wit."
    assert kept["w1"].by == "person"
    assert kept["p3"].deleted
    assert not kept["p3"].votes
    gone = before["p3"].sources
    assert [each.id for each in kept.values() if each.sources == gone] == ["p3"]
    assert ran.summary["people"]["ann"]["topics"][""]["chosen"] >= 2


def test_show_export_and_delete(place: Place) -> None:
    place.fit("--only", "ann")
    shown = place("show", place.profile("ann"))
    assert shown.code == 0
    assert "chosen set:" in shown.out
    assert "Prefers" in shown.out
    exported = json.loads(place("export", place.profile("ann")).out)
    assert exported["profile"]["person"] == "ann"
    assert len(exported["votes"]) == 12 * 16
    assert len(exported["files"]) == 3
    gone = place("delete", place.profile("ann"))
    assert gone.code == 0
    assert list((place.folder / "p").iterdir()) == []


def test_the_authors_selection_runs_on_the_votes_of_a_fit(place: Place) -> None:
    place.fit("--only", "ann")
    votes = place.folder / "p" / "ann.votes.jsonl"
    found = place("paper", votes, "--json").summary
    assert found["columns"][0] == "p1"
    assert found["columns"][-1] == "all"
    assert found["verdicts"] == 24
    with_plain = place("paper", votes, "--json", "--with-plain").summary
    assert with_plain["columns"][0] == "plain"


def test_a_judge_that_says_nothing_gives_no_profile_and_a_sentence(place: Place) -> None:
    place.configure(garbage_rate=1.0)
    ran = place.fit("--only", "ann")
    assert ran.code == 1
    assert "gave no verdict" in ran.summary["without_profile"][0]["why"]
    assert not place.profile("ann").exists()


def test_a_judge_that_always_takes_the_first_stays_the_plain_judge(place: Place) -> None:
    place.configure(position_bias=100.0)
    topic = place.fit("--only", "ann").summary["people"]["ann"]["topics"][""]
    assert topic["use"] == "plain"
    plain = topic["arms"][0]
    assert plain["accuracy"]["value"] == 0.5
    assert plain["positions"]["consistency_strict"]["value"] == 0
    assert plain["positions"]["position_bias"]["value"] == 0.5


def test_people_with_few_labels_are_named_with_the_reason(place: Place) -> None:
    ran = place.fit("--min-labels", 60)
    assert ran.code == 1
    reasons = {each["person"]: each["why"] for each in ran.summary["without_profile"]}
    assert reasons == dict.fromkeys(("ann", "bob"), "48 usable labels, fewer than 60")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--only", "zoe"), "nobody of that name"),
        (("--development", "1"), "--development: must be at least 2"),
        (("--judge", "replay:x.jsonl:m"), "recorded answers"),
        (("--template", "pairwise-en"), "does not name {{preferences}}"),
    ],
)
def test_bad_words_get_one_sentence_and_status_2(
    place: Place, words: tuple[str, ...], message: str
) -> None:
    (place.folder / "x.jsonl").write_text("{}\n", "utf-8")
    ran = place.fit(*words)
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_profiles_can_be_read_by_their_owner_only(place: Place) -> None:
    place.fit("--only", "ann")
    for path in (place.profile("ann"), place.folder / "p" / "ann.votes.jsonl"):
        assert path.stat().st_mode & 0o077 == 0


async def start_fit(place: Place) -> asyncio.subprocess.Process:
    words = ("preferences", "fit", str(place.pairs), "-o", str(place.folder / "p"))
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dikast", *words, "--config", str(place.folder / "c.toml")),
        *("--only", "ann", "--json", "--quiet", "--shuffles", "19", "--workers", "8"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def stored(place: Place) -> int:
    """Bytes of the call store and its journal."""
    return sum(path.stat().st_size for path in (place.folder / "p").glob("ann.calls.sqlite*"))


@pytest.mark.realtime
@pytest.mark.slow
async def test_a_killed_fit_goes_on_and_ends_with_the_same_profile(place: Place) -> None:
    place.configure(latency_s=0.02)
    child = await start_fit(place)
    async with asyncio.timeout(60):
        # Nothing announces that calls were stored.
        while not (place.folder / "p").exists() or stored(place) < 100_000:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    await child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert not place.profile("ann").exists()
    child = await start_fit(place)
    out, err = await child.communicate()
    assert child.returncode == 0, err.decode()
    resumed = json.loads(out)["people"]["ann"]
    assert 20 < resumed["stored_calls"] < resumed["calls"]
    whole = msgspec.json.decode(place.profile("ann").read_bytes())
    again = place.folder / "again"
    words = ("preferences", "fit", place.pairs, "-o", again, "--config", place.folder / "c.toml")
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "dikast",
        *map(str, words),
        "--only",
        "ann",
        "--quiet",
        "--shuffles",
        "19",
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert await child.wait() == 0
    fresh = msgspec.json.decode((again / "ann.json").read_bytes())
    assert {**whole, "made": ""} == {**fresh, "made": ""}


def test_each_profile_has_a_leaderboard_of_the_same_battles(place: Place) -> None:
    place.fit()
    rng = random.Random(3)
    sizes = {"terse": (15, 0), "wordy": (200, 0), "listing": (90, 8)}
    rows = [
        {
            "id": f"b{number}",
            "question": f"other question {number // 3}",
            "model_a": first,
            "model_b": second,
            "response_a": text(rng, *sizes[first]),
            "response_b": text(rng, *sizes[second]),
        }
        for number, (first, second) in enumerate(
            [("terse", "wordy"), ("wordy", "listing"), ("listing", "terse")] * 8
        )
    ]
    battles = write_rows(place.folder / "battles.jsonl", rows)
    words = ("--profile", place.profile("ann"), "--profile", place.profile("bob"))
    given = ("--config", place.folder / "c.toml", "--quiet", *words)
    found = place("leaderboard", battles, "--json", *given).summary
    order = {
        who: [each["model"] for each in ranking["models"]]
        for who, ranking in found["rankings"].items()
    }
    assert (order["ann"][0], order["bob"][0]) == ("terse", "listing")
    assert found["battles"] == 24
    assert {ranking["battles"] for ranking in found["rankings"].values()} == {24}
    assert found["compared"][0]["models"] == 3
    shown = place("leaderboard", battles, *given)
    assert "24 pairs that were decided under every profile; 0 were not" in shown.out
    nameless = place("leaderboard", place.pairs, *given)
    assert nameless.code == 2
    assert "names its two models" in nameless.err


async def test_no_wording_shows_the_judge_a_choice_of_the_prompt_it_judges(place: Place) -> None:
    words = [
        *("preferences", "fit", str(place.pairs), "-o", "p", "--judge", "reader"),
        *("--config", str(place.folder / "c.toml")),
    ]
    setup = Setup(build_parser().parse_args(words))
    development = tuple(
        Labelled(
            pair=Pair(
                id=f"p{n}", question=f"q{n // 2}", response_a=f"yes {n}", response_b=f"no {n}"
            ),
            winner="A",
            topic="",
            group=f"g{n // 2}",
        )
        for n in range(4)
    )
    candidates = [
        Preference(id=f"p{n}", text=f"Prefers sort {n}.", sources=(f"p{n}",)) for n in range(4)
    ]
    candidates.append(
        Preference(id="all", text="Prefers it all.", sources=("p0", "p1", "p2", "p3"))
    )
    topic = Topic("", Split(development=development, held_out=(), set_aside=()), ())
    seen: dict[str, str] = {}
    for column, strategy in columns_of(topic, development[0], candidates, setup):

        async def ask(call: Call, column: str = column) -> Completion:
            seen[column] = "\n".join(each.content for each in call.messages)
            return Completion(text='{"verdict": "A"}')

        await strategy.judge(development[0].pair, ask)
    assert "Prefers" not in seen["plain"]
    told = [n for n in range(4) if f"Prefers sort {n}." in seen[ONE_PROMPT]]
    assert told == [2, 3]
    assert "Prefers it all." not in seen[ONE_PROMPT]
    shown = [n for n in range(1, 4) if f"yes {n}" in seen[FEW_SHOT]]
    assert shown == [2, 3]


ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "preferences.md").read_text("utf-8")


def test_the_page_shows_what_the_example_prints(tmp_path: Path, cli: Cli) -> None:
    words = ("preferences", "fit", EXAMPLES / "preferences" / "labels.jsonl", "-o", tmp_path)
    given = ("--config", EXAMPLES / "preferences.toml", "--judge", "reader", "--quiet")
    dry = cli(*words, *given, "--dry-run")
    assert dry.out.strip() in PAGE
    ran = cli(*words, *given, "--md")
    assert ran.code == 0, ran.err
    assert ran.out.partition("### bob")[0].strip() in PAGE
    fitted, shipped = (
        msgspec.json.decode(path.read_bytes())
        for path in (tmp_path / "ann.json", EXAMPLES / "preferences" / "ann.json")
    )
    assert {**fitted, "made": ""} == {**shipped, "made": ""}
    assert f'"text": "{fitted["entries"][0]["preferences"][0]["text"]}"' in PAGE
    held_out = cli(
        *("preferences", "evaluate", EXAMPLES / "preferences" / "labels.jsonl", "--md"),
        *("--profile", tmp_path / "ann.json", *given),
    )
    table = held_out.out.partition("| ann | arith")[0].strip()
    assert table.startswith("### held-out labels")
    assert table in PAGE


def test_the_example_judges_with_the_shipped_profile(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out.jsonl"
    pairs = EXAMPLES / "preferences" / "labels.jsonl"
    ran = cli("judge", pairs, "-o", out, "--config", EXAMPLES / "preferences.toml", "--quiet")
    assert ran.code == 0, ran.err
    assert len(rows_of(out)) == 29
    strategy = (EXAMPLES / "preferences.toml").read_text("utf-8").partition("[strategy]")[2]
    assert all(line.partition("  #")[0] in PAGE for line in strategy.strip().splitlines())
