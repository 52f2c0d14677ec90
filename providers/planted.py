"""A simulated judge with criteria planted in it: what SESSE should find is known beforehand.

Used by `simulated` in the process and by `simulate_server` over HTTP where the settings list
`criteria`. It answers every prompt of SESSE: the holistic comparison, the drafting of questions,
the summary of a cluster, the equivalence of two clauses, and both tiers of the evaluation. Like a
model it goes by the words of the prompt and by nothing else, so that it says the same at either
place. Which criteria hold for a pair, and every vote, is a function of the seed and the texts.
Pure: no clock, no network, no state.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, cast

import orjson

from dikast.engine.model import Usage
from dikast.providers.simulation import (
    Answer,
    PlantedCriterion,
    Seen,
    SimulatedSettings,
    answer,
    better_shown,
    digest_of,
    latency_of,
    see,
    token_count,
    uniforms,
    verdict_text,
)
from dikast.providers.truth import EXCHANGED, Shown, TruthTable, joint_hash, text_hash

Task = Literal[
    "holistic",
    "draft",
    "summarise",
    "equivalence",
    "tier1",
    "tier1-single",
    "tier2",
    "tier2-batch",
]

# What only this prompt says, outside its fences: there no pair and no library can plant it.
_SIGNS: tuple[tuple[str, Task], ...] = (
    ("Decide for one of the two.", "holistic"),
    ("Write questions that would have led to the right verdict", "draft"),
    ("You are given conditions that belong to one theme", "summarise"),
    ("Decide whether they apply to the same cases", "equivalence"),
    ("Which of them hold for this request and these answers?", "tier1"),
    ("Does it hold for this request and these answers?", "tier1-single"),
    ("If the condition holds here, which answer is better at the property?", "tier2"),
    ("For each of them: if its condition holds here, which answer is better?", "tier2-batch"),
)
_NUMBERED = re.compile(r"^\s*(\d+)[.)]\s+(.*)$", re.MULTILINE)
_WANTED = re.compile(r"(?:up to|at most|no more than)\s+(\d+)", re.IGNORECASE)
_CIRCUMSTANCES = (
    "in a short exchange",
    "with little context",
    "for a lay reader",
    "among several demands",
    "under a stated limit",
    "where details matter",
    "as its main point",
    "beside other wishes",
)
_RESPECTS = (
    "from start to end",
    "at the decisive place",
    "without being told twice",
    "in every part",
    "even where it is hard",
    "in substance rather than in form",
    "as a careful reader would want",
    "with nothing left over",
)
_GARBAGE = "It is hard to say more than that."
_DRAFTS = 3


class _Shown(NamedTuple):
    """A pair as a prompt shows it, and what stands after it."""

    seen: Seen
    identity: int
    better: Shown
    lower_first: bool
    tail: str


def task_of(contents: Sequence[str]) -> Task | None:
    """Which of SESSE's prompts the messages are, by what they ask for; None for another one."""
    frame = see(contents).frame
    return next((task for sign, task in _SIGNS if sign in frame), None)


def simulated_answer(
    settings: SimulatedSettings,
    truth: TruthTable | None,
    model: str,
    contents: Sequence[str],
    *,
    draw: int = 0,
    logprobs: bool = False,
) -> Answer:
    """What a simulated judge says to any prompt, with criteria or without. Args: as `answer`."""
    task = task_of(contents) if settings.criteria else None
    if task is None:
        return answer(settings, truth, model, contents, draw=draw, logprobs=logprobs)
    return planted_answer(settings, truth, model, contents, task, draw=draw)


def planted_answer(
    settings: SimulatedSettings,
    truth: TruthTable | None,
    model: str,
    contents: Sequence[str],
    task: Task,
    *,
    draw: int = 0,
) -> Answer:
    """What the judge says to a prompt of SESSE.

    Args:
        settings: its character, with the planted criteria.
        truth: the better answers, where they are known; else a latent quality decides.
        model: its name; another name is another judge of the same character.
        contents: the texts of the messages.
        task: as `task_of` tells.
        draw: tells repeated draws of the same prompt apart.
    """
    digest = digest_of(64, settings.seed, model, draw, "\n".join(contents))
    odd, coin, delay = uniforms(digest)[:3]
    mind = _Mind(settings, truth, model)
    text = mind.says(task, contents, coin)
    finish, refusal = "stop", False
    if odd < settings.refuse_rate:
        text, refusal = "", True
    elif odd < settings.refuse_rate + settings.truncate_rate:
        text, finish = text[: len(text) // 2], "length"
    elif odd < settings.refuse_rate + settings.truncate_rate + settings.garbage_rate:
        text = _GARBAGE
    whole = token_count("\n".join(contents))
    # Tier 1 has sent the same material before: all but the question itself comes from the cache.
    asked = token_count(_after_answers("\n".join(contents)))
    cached = max(0, whole - asked) if task.startswith("tier2") else 0
    usage = Usage(input=whole, cached_input=cached, output=token_count(text))
    return Answer(text, finish, usage, latency_of(settings, delay), digest[:16], refusal)


class _Mind:
    """The judge's opinions."""

    def __init__(self, settings: SimulatedSettings, truth: TruthTable | None, model: str) -> None:
        self._settings = settings
        self._truth = truth
        self._model = model

    def says(self, task: Task, contents: Sequence[str], coin: float) -> str:
        text = "\n".join(contents)
        if task == "summarise":
            return self._summary(text)
        if task == "equivalence":
            return self._equivalent(text)
        shown = self._shown(contents)
        if task == "holistic":
            return self._holistic(shown, coin)
        if task == "draft":
            return self._drafts(shown, text)
        if task == "tier1":
            return self._routes(shown)
        if task == "tier1-single":
            return "yes" if self._selects(shown, shown.tail) else "no"
        if task == "tier2":
            return self._vote(shown, shown.tail)
        votes = {number: self._vote(shown, each) for number, each in _NUMBERED.findall(shown.tail)}
        return orjson.dumps(votes).decode()

    def _shown(self, contents: Sequence[str]) -> _Shown:
        seen = see(contents)
        first, second = text_hash(seen.first or ""), text_hash(seen.second or "")
        return _Shown(
            seen=seen,
            identity=joint_hash(seen.question, first, second),
            better=better_shown(self._truth, seen.question, first, second),
            lower_first=first <= second,
            tail=_after_answers("\n".join(contents)),
        )

    def _uniform(self, shown: _Shown, *what: object) -> float:
        """A number that belongs to the pair and a matter, whichever answer is shown first."""
        parts = (self._settings.seed, self._model, shown.identity, *what)
        return uniforms(digest_of(8, *parts))[0]

    def _holds(self, shown: _Shown, criterion: PlantedCriterion) -> bool:
        return criterion_holds(self._settings, shown.identity, criterion)

    def _right(self, shown: _Shown, chance: float, uniform: float) -> Shown:
        """The better answer with a probability, the worse one otherwise; bias moves the chance."""
        bias = self._settings.position_bias
        better = shown.better
        if better == "tie":
            lower: Shown = "A" if shown.lower_first else "B"
            return lower if uniform < 0.5 else EXCHANGED[lower]
        chance += bias if better == "A" else -bias
        return better if uniform < chance else EXCHANGED[better]

    def _holistic(self, shown: _Shown, coin: float) -> str:
        blind = [
            each.blind
            for each in self._settings.criteria
            if each.blind is not None and self._holds(shown, each)
        ]
        chance = 1 - max(blind) if blind else self._settings.accuracy
        if self._uniform(shown, "share") < self._settings.consistency:
            coin = self._uniform(shown, "holistic")
        pick = self._right(shown, chance, coin)
        said = verdict_text(shown.seen, "One answer serves the request better.", pick)
        return "".join(said)

    def _drafts(self, shown: _Shown, text: str) -> str:
        """Questions on what holds for the pair, in its own wording; none where nothing does."""
        # After the material, which may speak of "at most 500 words" itself.
        wanted: list[str] = _WANTED.findall(shown.tail)
        limit = int(wanted[-1]) if wanted else _DRAFTS
        holding = [each for each in self._settings.criteria if self._holds(shown, each)]
        # What the judge is most often wrong about is what it is told it was wrong about.
        holding.sort(key=lambda each: -(each.blind or 0.0))
        out: list[dict[str, str]] = []
        for number in range(limit if holding else 0):
            criterion = holding[number % len(holding)]
            at = int(self._uniform(shown, "wording", criterion.name, number) * 64)
            out.append(
                {
                    "condition": f"{criterion.condition} {_CIRCUMSTANCES[at % 8]}",
                    "conclusion": f"{criterion.conclusion} {_RESPECTS[at // 8]}",
                }
            )
        # The form that the prompt shows: a bare list, or an object around it.
        return orjson.dumps({"questions": out} if '"questions"' in text else out).decode()

    def _summary(self, text: str) -> str:
        lowered = text.casefold()
        counts = [
            (lowered.count(each.condition.casefold()), each.condition)
            for each in self._settings.criteria
        ]
        most = max(count for count, _ in counts)
        clause = next(condition for count, condition in counts if count == most)
        if not most:
            clause = "the request has a demand of its own"
        return _json_or_text(text, "condition", clause)

    def _equivalent(self, text: str) -> str:
        named = [each.condition.casefold() for each in self._settings.criteria]
        found = sum(text.casefold().count(each) for each in named)
        same = found >= 2 and any(text.casefold().count(each) == found for each in named)
        return _json_or_text(text, "equivalent", "yes" if same else "no")

    def _routes(self, shown: _Shown) -> str:
        """The numbers of the clauses that hold, after the judge's own hits and false alarms."""
        clauses = _NUMBERED.findall(shown.tail)
        numbers = [int(number) for number, clause in clauses if self._selects(shown, clause)]
        return orjson.dumps(numbers).decode()

    def _selects(self, shown: _Shown, clause: str) -> bool:
        criterion = criterion_in(self._settings, clause)
        if criterion is None:
            return False
        uniform = self._uniform(shown, "route", criterion.name)
        holds = self._holds(shown, criterion)
        return uniform < (criterion.recall if holds else criterion.false_alarm)

    def _vote(self, shown: _Shown, question: str) -> str:
        criterion = criterion_in(self._settings, question)
        if criterion is None:
            return "NA"
        wording = " ".join(re.sub(r"<<<.*?>>>", " ", question).split())
        na, coin, share = (
            self._uniform(shown, criterion.name, wording, part) for part in ("na", "coin", "share")
        )
        if not self._holds(shown, criterion):
            if na >= criterion.leak:
                return "NA"
            return self._right(shown, 0.5, coin)
        if na < criterion.na_rate:
            return "NA"
        if share < criterion.shared:
            coin = self._uniform(shown, criterion.name, "coin")
        return self._right(shown, criterion.skill, coin)


def criterion_holds(
    settings: SimulatedSettings, identity: int, criterion: PlantedCriterion
) -> bool:
    """Whether a criterion matters for a pair; the same for every judge of one seed.

    Args:
        settings: with the seed.
        identity: the pair's texts as one number, whichever answer is shown first.
        criterion: one of the planted ones.
    """
    drawn = uniforms(digest_of(8, settings.seed, identity, "holds", criterion.name))[0]
    return drawn < criterion.applies


def criterion_in(settings: SimulatedSettings, text: str) -> PlantedCriterion | None:
    """The planted criterion that a text speaks of, by its condition or its conclusion."""
    lowered = text.casefold()
    found = [
        (len(words), each)
        for each in settings.criteria
        for words in (each.conclusion, each.condition)
        if words.casefold() in lowered
    ]
    return max(found, key=lambda item: item[0])[1] if found else None


def _after_answers(text: str) -> str:
    """What a prompt says after the material: the question, without fences."""
    opening = re.search(r"<<<ANSWER_B ([0-9a-f]{8,})>>>", text)
    if opening is None:
        return text
    closing = text.find(f"<<<END ANSWER_B {opening[1]}>>>", opening.end())
    return text[closing:].partition("\n")[2] if closing >= 0 else ""


def _json_or_text(text: str, field: str, value: str) -> str:
    """The answer in the form that the prompt asks for."""
    return orjson.dumps({field: value}).decode() if "JSON" in text else value


def criterion_problems(where: str, criteria: Sequence[PlantedCriterion]) -> str | None:
    """What is wrong with planted criteria, as one sentence; None where nothing is."""
    names = [each.name for each in criteria]
    for at, each in enumerate(criteria):
        place = f"{where}.criteria[{at}]"
        if names.count(each.name) > 1:
            return f"{place}.name: {each.name!r} is there twice; give each criterion its own name"
        if not each.condition.strip() or not each.conclusion.strip():
            return f"{place}: condition and conclusion must not be empty"
        for field in ("applies", "skill", "blind", "na_rate", "leak", "recall", "false_alarm"):
            value = cast("float | None", getattr(each, field))
            if value is not None and not 0 <= value <= 1:
                return f"{place}.{field}: must lie between 0 and 1"
        if not 0 <= each.shared <= 1:
            return f"{place}.shared: must lie between 0 and 1"
    return None
