"""A library from a judge whose criteria are known: found again, for the calls of the formulas."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dikast.engine.clock import SystemClock
from dikast.engine.errors import InputError, ProviderError, RunStopped
from dikast.engine.model import Call, Judge, Pair
from dikast.engine.ports import CallStore, Reply
from dikast.engine.retry import RetryPolicy
from dikast.engine.run import Engine
from dikast.engine.store import MemoryStore
from dikast.providers import PlantedCriterion, SimulatedProvider, SimulatedSettings, TruthTable
from dikast.providers.embeddings import HashEmbedder
from dikast.strategies import Pairwise
from dikast.strategies.sesse import BuildParams, Library
from dikast.strategies.sesse.bills import Built
from dikast.strategies.sesse.build import LibraryBuilder
from dikast.strategies.sesse.embedding import StoredEmbedder
from dikast.strategies.sesse.prompts import holistic_template
from dikast.strategies.sesse.split import fingerprint, split_rows
from dikast.strategies.sesse.stages import StageStop
from dikast.strategies.sesse.workdir import Workdir

CRITERIA = (
    PlantedCriterion(
        name="count",
        condition="the request asks for an exact number of items",
        conclusion="gives exactly the number that was asked for",
        applies=0.4,
        blind=0.7,
    ),
    PlantedCriterion(
        name="code",
        condition="programming source is wanted by the user",
        conclusion="compiles and runs without mistakes",
        applies=0.35,
        blind=0.7,
    ),
    PlantedCriterion(
        name="tone",
        condition="some courteous wording was demanded",
        conclusion="keeps a friendly register throughout",
        applies=0.35,
        blind=0.7,
    ),
)
RARE = msgspec.structs.replace(CRITERIA[0], applies=0.0)
PAIRS = [
    Pair(
        id=f"p{n:03d}",
        question=f"what of {n} and {n * 7 % 13}?",
        response_a=f"first view {n}",
        response_b=f"second view {n * 3}",
        label="A" if n % 2 else "B",
        category=f"part{n % 3}",
    )
    for n in range(160)
]
JUDGE = Judge(name="j", provider="p", model="m")


class Counting:
    """The planted judge; counts what it is asked by template, and may fail.

    A wordy one labels every cluster in words of its own, so that labels are alike and not equal.
    A one-way one calls them equivalent only when the smaller one is shown first.
    """

    simulated = True

    def __init__(
        self, fails: str = "", *, wordy: bool = False, one_way: bool = False, **settings: Any
    ) -> None:
        character = SimulatedSettings(
            **{"criteria": CRITERIA, "seed": 5, "accuracy": 0.95, **settings}
        )
        self._inner = SimulatedProvider(character, SystemClock(), TruthTable.from_pairs(PAIRS))
        self._fails = fails
        self._wordy = wordy
        self._one_way = one_way
        self.asked: Counter[str] = Counter()

    async def complete(self, call: Call) -> Reply:
        self.asked[call.prompt.partition("@")[0].removeprefix("sesse-")] += 1
        if self._fails and call.pair_id == self._fails:
            raise ProviderError("bad_request", "too odd to answer")
        reply = await self._inner.complete(call)
        if self._wordy and call.prompt.startswith("sesse-summarise"):
            label = json.loads(reply.completion.text)["condition"]
            text = json.dumps({"condition": f"{label}, case {call.key()[:6]}"})
            completion = msgspec.structs.replace(reply.completion, text=text)
            return Reply(completion=completion)
        if self._one_way and call.prompt.startswith("sesse-equivalence"):
            lines = call.messages[-1].content.splitlines()
            first, second = (
                lines[at + 1]
                for at, line in enumerate(lines)
                if line.startswith(("<<<FIRST", "<<<SECOND"))
            )
            text = json.dumps({"equivalent": "yes" if first < second else "no"})
            return Reply(completion=msgspec.structs.replace(reply.completion, text=text))
        return reply

    async def aclose(self) -> None:
        await self._inner.aclose()


async def built(
    provider: Counting,
    *,
    rows: list[Pair] | None = None,
    store: CallStore | None = None,
    folder: Path | None = None,
    workers: int = 16,
    stop: StageStop | None = None,
    failures_max: int = 0,
    on_progress: Any = None,
    **params: Any,
) -> Built:
    mine, _, split = split_rows(rows or PAIRS, share=1.0, seed=0, stratify=False)
    strategy = Pairwise(JUDGE, holistic_template())
    async with Engine(
        strategy, {"p": provider}, store=store, retry=RetryPolicy(attempts_max=1)
    ) as engine:
        builder = LibraryBuilder(
            JUDGE,
            JUDGE,
            StoredEmbedder(HashEmbedder(64), store),
            BuildParams(**{"n_init": 2, **params}),
            asker=engine.asker,
            workdir=Workdir(folder),
            workers=workers,
            stop=stop,
            failures_max=failures_max,
            **({"on_progress": on_progress} if on_progress else {}),
        )
        return await builder.run(mine, split=split, fingerprint=fingerprint(mine))


def library_in(found: Built) -> Library:
    assert found.library is not None
    return found.library


def criteria_of(cluster: Any) -> Counter[str]:
    """Which planted criterion each question of a cluster was drafted from."""
    return Counter(
        each.name
        for question in cluster.questions
        for each in CRITERIA
        if question.condition.startswith(each.condition)
    )


async def test_the_planted_criteria_are_found_again() -> None:
    library = library_in(await built(Counting()))
    labels = {cluster.label for cluster in library.clusters}
    assert labels == {each.condition for each in CRITERIA}
    # Every theme is one criterion: at most one question in ten may have strayed into another's.
    questions = [criteria_of(cluster) for cluster in library.clusters]
    pure = sum(max(each.values()) for each in questions)
    assert pure >= 0.9 * sum(sum(each.values()) for each in questions)
    assert len(library.clusters) == len(CRITERIA)
    assert library.simulated
    assert library.embedder == "hash@1-64"


async def test_the_calls_are_those_of_the_formulas() -> None:
    provider = Counting()
    found = await built(provider, merge_quantile=0.0)
    stats = library_in(found).stats
    assert provider.asked == {
        "holistic": len(PAIRS),
        "draft": stats["errors"],
        "summarise": stats["k"] + stats["merged"],
        "equivalence": 2 * stats["candidates"],
    }
    assert stats["formula"] == stats["calls"]
    assert {bill.stage: bill.asked for bill in found.bills} == stats["formula"]
    assert stats["rows"] == stats["correct"] + stats["wrong"] + stats["invalid"]
    assert stats["errors"] == stats["wrong"]
    rejected = sum(stats["rejected"].values())
    assert stats["drafted"] == stats["questions"] + rejected - stats["rejected"].get("not_json", 0)


async def test_themes_that_are_alike_are_merged_and_their_questions_chosen_anew(
    tmp_path: Path,
) -> None:
    provider = Counting(wordy=True)
    found = await built(provider, folder=tmp_path, merge_quantile=0.5, n_max=6)
    library = library_in(found)
    stats = library.stats
    assert stats["merged"] >= 2
    assert stats["k_after"] == len(library.clusters) < stats["k"]
    assert stats["formula"] == stats["calls"]
    assert provider.asked["summarise"] == stats["k"] + stats["merged"]
    assert provider.asked["equivalence"] == 2 * stats["candidates"]
    merged = [cluster for cluster in library.clusters if cluster.merged_from]
    assert len(merged) == stats["merged"]
    before = {each["cid"]: each for each in json.loads((tmp_path / "clusters.json").read_text())}
    for cluster in merged:
        assert cluster.cid == cluster.merged_from[0]
        assert 2 <= len(cluster.merged_from) <= BuildParams().merge_cap
        assert len(criteria_of(cluster)) == 1
        pooled = {text for cid in cluster.merged_from for text in before[cid]["questions"]}
        size = sum(before[cid]["size"] for cid in cluster.merged_from)
        assert len(cluster.questions) == min(6, size)
        assert not {before[cid]["label"] for cid in cluster.merged_from} & {cluster.label}
        assert {question.text for question in cluster.questions} & pooled
    once = [cid for cluster in library.clusters for cid in cluster.merged_from or (cluster.cid,)]
    assert sorted(once) == sorted(before)


async def test_a_yes_in_one_order_merges_nothing(tmp_path: Path) -> None:
    provider = Counting(wordy=True, one_way=True)
    library = library_in(await built(provider, folder=tmp_path, merge_quantile=0.5))
    lines = (tmp_path / "merges.jsonl").read_text().splitlines()
    asked = [json.loads(line) for line in lines]
    assert len(asked) == library.stats["candidates"] > 3
    assert all({each["forward"], each["backward"]} == {"yes", "no"} for each in asked)
    assert library.stats["merged"] == library.stats["equivalent"] == 0
    assert provider.asked["summarise"] == library.stats["k"]


async def test_unreadable_answers_are_asked_once_more_counted_apart_and_never_mined(
    tmp_path: Path,
) -> None:
    provider = Counting(garbage_rate=0.3)
    found = await built(provider, folder=tmp_path)
    stats = library_in(found).stats
    again = {bill.stage: bill.retried for bill in found.bills}
    assert again["holistic"] > 20
    assert provider.asked["holistic"] == len(PAIRS) + again["holistic"]
    assert provider.asked["draft"] == stats["errors"] + again["draft"]
    assert stats["invalid"] > 3
    assert stats["accuracy"] == pytest.approx(stats["correct"] / len(PAIRS), abs=1e-6)
    lines = [json.loads(line) for line in (tmp_path / "holistic.jsonl").read_text().splitlines()]
    invalid = {row["id"] for row in lines if row["verdict"] == "INVALID"}
    mined = [json.loads(line) for line in (tmp_path / "errors.jsonl").read_text().splitlines()]
    assert len(invalid) == stats["invalid"]
    assert not invalid & {row["id"] for row in mined}
    assert all(row["verdict"] != row["label"] and row["analysis"] for row in mined)


async def test_the_library_is_the_same_for_any_order_of_rows_and_any_number_of_workers() -> None:
    one = library_in(await built(Counting(latency_s=0.5, latency_kind="lognormal")))
    other = library_in(await built(Counting(), rows=PAIRS[::-1], workers=1))
    assert one == other
    assert one.hash == other.hash
    assert library_in(await built(Counting(), seed=1)).hash != one.hash


async def test_a_second_build_asks_nothing() -> None:
    store, again = MemoryStore(), Counting()
    first = library_in(await built(Counting(), store=store))
    second = await built(again, store=store)
    assert library_in(second).hash == first.hash
    assert again.asked == {}
    assert all(bill.stored == bill.asked for bill in second.bills)


@pytest.mark.parametrize("stage", ["holistic", "draft", "summarise", "equivalence"])
async def test_a_build_stopped_in_any_stage_pays_for_the_rest_only(stage: str) -> None:
    whole = Counting()
    library = library_in(await built(whole, store=MemoryStore(), merge_quantile=0.0))
    store, stop = MemoryStore(), StageStop()

    def watch(name: str, done: int, total: int, bill: object) -> None:
        if name == stage and done == 2:
            stop.drain("stopped here")

    first = Counting(latency_s=1.0, latency_kind="uniform", latency_spread=0.9)
    with pytest.raises(RunStopped, match="stopped here"):
        await built(first, store=store, stop=stop, on_progress=watch, workers=1, merge_quantile=0.0)
    assert 0 < first.asked[stage] < whole.asked[stage]
    second = Counting()
    found = await built(second, store=store, merge_quantile=0.0)
    assert library_in(found).hash == library.hash
    assert first.asked + second.asked == whole.asked


async def test_a_failed_call_ends_the_build_and_is_no_error_of_the_judge() -> None:
    store = MemoryStore()
    found = await built(Counting(fails="p007"), store=store)
    assert found.library is None
    assert found.stage == "holistic"
    assert [(each.id, each.kind) for each in found.failures] == [("p007", "bad_request")]
    allowed = await built(Counting(fails="p007"), store=store, failures_max=1)
    stats = library_in(allowed).stats
    assert (stats["rows"], stats["judged"]) == (len(PAIRS), len(PAIRS) - 1)
    healed = Counting()
    library_in(await built(healed, store=store))
    assert healed.asked["holistic"] == 1


async def test_a_judge_without_errors_gives_no_library() -> None:
    with pytest.raises(InputError, match="nothing to mine"):
        await built(Counting(criteria=(RARE,), accuracy=1.0))


async def test_every_artefact_can_be_read(tmp_path: Path) -> None:
    library = library_in(await built(Counting(), folder=tmp_path))
    names = {path.name for path in tmp_path.iterdir()}  # noqa: ASYNC240
    assert names == {
        *("holistic.jsonl", "errors.jsonl", "questions.jsonl", "rejected.jsonl"),
        *("clusters.json", "merges.jsonl", "merged.json", "bills.json"),
    }
    questions = (tmp_path / "questions.jsonl").read_text().splitlines()
    assert len(questions) == library.stats["questions"]
    clusters = json.loads((tmp_path / "clusters.json").read_text())
    assert sum(cluster["size"] for cluster in clusters) == library.stats["questions"]
    bills = json.loads((tmp_path / "bills.json").read_text())
    assert [bill["stage"] for bill in bills] == list(library.stats["formula"])


async def test_a_cluster_holds_at_most_so_many_questions_in_falling_distance() -> None:
    library = library_in(await built(Counting(), n_max=4))
    for cluster in library.clusters:
        assert 1 <= len(cluster.questions) <= 4
        radii = cluster.insertion_radius[1:]
        assert list(radii) == sorted(radii, reverse=True)
    deeper = library_in(await built(Counting(), n_max=8))
    for shallow, deep in zip(library.clusters, deeper.clusters, strict=True):
        assert deep.questions[: len(shallow.questions)] == shallow.questions
