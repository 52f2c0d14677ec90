"""Libraries over planted criteria and judges that know them, for tests of SESSE."""

from collections.abc import Mapping, Sequence
from typing import Any

from dikast.engine.clock import ManualClock
from dikast.engine.model import Call, Completion, Judge, Outcome, Pair
from dikast.providers import PlantedCriterion, SimulatedProvider, SimulatedSettings, TruthTable
from dikast.strategies import Loaders, Sesse, SesseConfig, build
from dikast.strategies.sesse.library import (
    BuildParams,
    Cluster,
    Library,
    Question,
    Split,
    qid_of,
)

JUDGES = {name: Judge(name=name, provider="p", model=name) for name in ("j", "strong")}


def planted(name: str, **more: Any) -> PlantedCriterion:
    """A criterion with words of its own."""
    return PlantedCriterion(
        name=name,
        condition=f"the request turns on {name}",
        conclusion=f"takes care of {name}",
        **more,
    )


def pairs(count: int, start: int = 0, subsets: Sequence[str] = ("s",)) -> list[Pair]:
    """Labelled pairs with different texts."""
    return [
        Pair(
            id=f"p{number}",
            question=f"Question {number}?",
            response_a=f"One answer to {number}.",
            response_b=f"Quite another answer to {number}, and longer.",
            category=subsets[number % len(subsets)],
            label="A" if number % 3 else "B",
        )
        for number in range(start, start + count)
    ]


def question(criterion: PlantedCriterion, number: int, **more: Any) -> Question:
    """The `number`th wording of a criterion."""
    condition, conclusion = f"{criterion.condition} in way {number}", criterion.conclusion
    return Question(
        qid=qid_of(condition, conclusion), condition=condition, conclusion=conclusion, **more
    )


def library_of(
    clusters: Mapping[str, Sequence[Question]],
    labels: Mapping[str, PlantedCriterion],
    **more: Any,
) -> Library:
    """A library with the given clusters, each labelled by a criterion's condition."""
    return Library(
        judge="j",
        params=BuildParams(n_max=max(len(found) for found in clusters.values())),
        split=Split(seed=0, mine_rows=0, mine_ids_sha=""),
        clusters=tuple(
            Cluster(cid=cid, label=labels[cid].condition, questions=tuple(found))
            for cid, found in clusters.items()
        ),
        simulated=True,
        **more,
    )


def plain_library(criteria: Sequence[PlantedCriterion], depth: int, **more: Any) -> Library:
    """One cluster a criterion, `depth` wordings in each."""
    named = {f"c{at}": each for at, each in enumerate(criteria)}
    found = {
        cid: [question(each, number) for number in range(depth)] for cid, each in named.items()
    }
    return library_of(found, named, **more)


class World:
    """A planted judge with a count of what it was asked."""

    def __init__(self, known: Sequence[Pair], *criteria: PlantedCriterion, **settings: Any) -> None:
        self.provider = SimulatedProvider(
            SimulatedSettings(criteria=criteria, **settings),
            ManualClock(),
            TruthTable.from_pairs(known),
        )
        self.calls: list[Call] = []
        self._built: dict[tuple[object, ...], tuple[Library, Sesse]] = {}

    async def __call__(self, call: Call) -> Completion:
        self.calls.append(call)
        return (await self.provider.complete(call)).completion

    def asked(self, template: str) -> int:
        """How many calls of a template there were."""
        return sum(call.prompt.partition("@")[0] == template for call in self.calls)

    async def judge(self, library: Library, pair: Pair, seed: int = 0, **config: Any) -> Outcome:
        """One pair by a library; the strategy is made once, as in a run."""
        key = (id(library), seed, repr(config))
        if key not in self._built:
            self._built[key] = (library, sesse(library, seed, **config))
        return await self._built[key][1].judge(pair, self)


def sesse(library: Library, seed: int = 0, **config: Any) -> Sesse:
    """The strategy over a library in memory."""
    found = build(
        SesseConfig(judge="j", library="lib.json", **config),
        JUDGES,
        seed=seed,
        loaders=Loaders(library=lambda _: library),
    )
    assert isinstance(found, Sesse)
    return found
