"""Simpler ways to spend the same calls: what a claim for SESSE has to be held against.

Strategies of their own over the same judge, in the same harness: the hybrid mode, the holistic
verdict with and without an analysis, as many samples of it as SESSE makes calls, a hand-written
rubric and a shuffled library through the same two tiers, and all clauses in one prompt. Knows no
provider.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from dikast.engine.model import Judge, Outcome, Pair
from dikast.engine.ports import Ask, Strategy
from dikast.strategies.pairwise import Pairwise
from dikast.strategies.prompts import PromptTemplate, load_template
from dikast.strategies.repeat import repeat
from dikast.strategies.sesse.config import SesseConfig
from dikast.strategies.sesse.library import Cluster, Library, Question, qid_of
from dikast.strategies.sesse.plan import Plan
from dikast.strategies.sesse.prompts import holistic_template
from dikast.strategies.sesse.strategy import Sesse
from dikast.strategies.sesse.tier_prompts import tier_prompts

Baseline = Literal[
    "sesse", "hybrid", "holistic", "direct", "self-consistency", "rubric", "random", "labels"
]
BASELINES: tuple[Baseline, ...] = get_args(Baseline)

_TEMPLATES = Path(__file__).with_name("tier_templates")

# What people commonly put into a rubric for answers, written down before any data were looked at.
_RUBRIC = (
    ("the request sets conditions that an answer has to keep", "keeping every one of them"),
    ("an answer states facts", "the facts being right"),
    ("the request asks for several things", "doing all of them"),
    ("the request has a definite right answer", "arriving at it"),
    ("the request needs steps of reasoning or calculation", "the steps being sound"),
    ("the request asks for code", "the code doing what was asked"),
    ("the request could do harm if it were followed", "avoiding the harm"),
    ("the request is harmless", "helping instead of refusing"),
    ("the request is answered in prose", "being clear and easy to follow"),
    ("the request can be answered briefly", "saying no more than is needed"),
)


def make(
    name: Baseline,
    judge: Judge,
    library: Library,
    config: SesseConfig,
    *,
    seed: int,
    calls: int = 1,
    temperature: float = 0.7,
) -> Strategy:
    """One of the baselines.

    Args:
        name: which.
        judge: who is asked.
        library: SESSE's own.
        config: how SESSE asks; the rubric and the shuffled library are asked alike.
        seed: fixes orders, fences and the shuffling.
        calls: for "self-consistency": how many samples, the calls that SESSE makes for a pair.
        temperature: of those samples.
    """
    if name == "holistic":
        return Pairwise(judge, holistic_template(), seed=seed)
    if name == "direct":
        # One letter is no JSON object.
        plain = msgspec.structs.replace(judge.params, json_mode=False)
        return Pairwise(
            msgspec.structs.replace(judge, params=plain), _template("sesse-direct"), seed=seed
        )
    if name == "self-consistency":
        params = msgspec.structs.replace(judge.params, temperature=temperature)
        warm = msgspec.structs.replace(judge, params=params)
        return repeat(Pairwise(warm, holistic_template(), seed=seed), max(1, calls), "plurality")
    if name == "labels":
        return Labelled(judge, library, seed=seed)
    asked = {
        "sesse": library,
        "hybrid": library,
        "random": shuffled(library, seed),
        "rubric": rubric(library),
    }[name]
    if name == "rubric":
        # Its one cluster holds for every pair; Tier 2 says NA where a question does not apply.
        config = msgspec.structs.replace(config, tier1="off", depth=None, weights=False)
    if name == "hybrid":
        config = msgspec.structs.replace(config, mode="hybrid", ladder=())
    if name == "random":
        asked = shuffled(library, seed)
        config = msgspec.structs.replace(config, weights=False)
    return Sesse(Plan(judge, asked, tier_prompts(), holistic_template(), config, seed=seed))


def _template(name: str) -> PromptTemplate:
    return load_template(str(_TEMPLATES / f"{name}.toml"))


def rubric(library: Library) -> Library:
    """Ten general questions, written by hand, as a library with one cluster."""
    questions = tuple(
        Question(qid=qid_of(condition, conclusion), condition=condition, conclusion=conclusion)
        for condition, conclusion in _RUBRIC
    )
    return msgspec.structs.replace(
        library,
        clusters=(Cluster(cid="rubric", label="an answer is given", questions=questions),),
        params=msgspec.structs.replace(library.params, n_max=len(questions)),
        builder="by hand",
        embedder="",
        prompts_sha="",
        stats={},
        depth=None,
        hybrid_threshold=None,
        parent=None,
    )


def shuffled(library: Library, seed: int) -> Library:
    """The same questions, dealt out to the clusters by chance: neither theme nor order is left.

    Args:
        library: whose questions, labels and cluster sizes are kept.
        seed: decides the dealing.
    """
    questions = [each for cluster in library.clusters for each in cluster.questions]
    questions.sort(key=lambda each: each.qid)
    random.Random(seed).shuffle(questions)
    clusters: list[Cluster] = []
    start = 0
    for cluster in library.clusters:
        end = start + len(cluster.questions)
        clusters.append(
            msgspec.structs.replace(
                cluster,
                questions=tuple(questions[start:end]),
                insertion_radius=(),
                centroid=(),
                muted=False,
            )
        )
        start = end
    return msgspec.structs.replace(library, clusters=tuple(clusters), parent=library.hash)


class Labelled:
    """The holistic comparison with all clauses of a library in its prompt.

    Args:
        judge: who is asked.
        library: whose labels are shown.
        seed: fixes orders and fences.
    """

    def __init__(self, judge: Judge, library: Library, *, seed: int) -> None:
        self._labels: Sequence[str] = [each.label for each in library.clusters]
        self._hash = library.hash
        self._inner = Pairwise(judge, _template("sesse-labels"), seed=seed)

    @property
    def name(self) -> str:
        """`sesse_labels@version`."""
        return "sesse_labels@1"

    def spec(self) -> dict[str, Any]:
        """All that decides the result."""
        return {"kind": "sesse_labels", "library": self._hash, "inner": self._inner.spec()}

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Ask once, with the clauses in place of the pair's own key points.

        Raises:
            ProviderError: the call failed for good.
            RunStopped: the run ends.
        """
        shown = msgspec.structs.replace(pair, key_points=tuple(self._labels))
        return await self._inner.judge(shown, ask)
