"""Pointwise scoring: each answer is graded by itself, on a rubric; the totals of a pair compare.

A strategy like any other: a pair comes in, two calls go out (one for each answer, same rubric, in
no order that could matter), a verdict leaves with the scores of every dimension and side. A single
answer takes one call and has no winner. Knows nothing of providers, pacing, storage or of the
strategies around it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import (
    Call,
    Completion,
    Item,
    Judge,
    Order,
    Outcome,
    Pair,
    Pick,
    Scored,
    Subject,
    Undecided,
    UndecidedWhy,
    Verdict,
    Vote,
    Winner,
)
from dikast.engine.ports import Ask
from dikast.strategies.logprob import expected_grade
from dikast.strategies.node import Node
from dikast.strategies.pairwise import DecideBy, check_decide, judge_spec
from dikast.strategies.rubric import Rubric, RubricLoader, load_rubric
from dikast.strategies.score_prompt import ScorePrompt, score_record
from dikast.strategies.structured import Answered, StructuredReader, json_schema
from dikast.strategies.text import mostly_chinese

VERSION = "1"

AUTO = "auto"
"""The rubric name that stands for: general quality, by the language of each question."""

_AUTO_RUBRICS = ("general-en", "general-zh")


class ScoreConfig(Node, frozen=True, kw_only=True, tag="score"):
    """`kind = "score"`: one judge grades each answer by itself; the better total wins.

    `judge` is a judge's name. `rubric` is a shipped name, a path ending in .toml, or "auto" (the
    general rubric, Chinese for Chinese questions, else English; default). `tie_margin` is the
    difference of totals up to which it is a tie, as a share of the scale. `decide` is "text" (the
    written grade, default) or "logprobs" (the expected grade). `repair` allows one more call when
    an answer cannot be read. `sample` is the number of the draw. `keep_text` keeps the judge's
    words in the outcome.
    """

    judge: str
    rubric: str = AUTO
    tie_margin: float = 0.0
    decide: DecideBy = "text"
    repair: bool = True
    sample: int = 0
    keep_text: bool = False

    def asks(self) -> tuple[str, ...]:
        """Its judge."""
        return (self.judge,)

    def calls(self) -> tuple[int, int]:
        """One for each answer, and one more for each where a repair is allowed."""
        return (2, 4 if self.repair else 2)

    def needs(self) -> tuple[str, ...]:
        """Log probabilities, where they decide."""
        return ("log probabilities: top_logprobs of the judge",) * (self.decide == "logprobs")


def build_score(
    config: ScoreConfig, judge: Judge, *, seed: int, rubric_loader: RubricLoader = load_rubric
) -> "Score":
    """Make the strategy that a node describes.

    Raises:
        ConfigError: an unknown rubric, or settings that cannot work.
    """
    names = _AUTO_RUBRICS if config.rubric == AUTO else (config.rubric,)
    return Score(
        judge,
        [rubric_loader(name) for name in names],
        seed=seed,
        tie_margin=config.tie_margin,
        decide=config.decide,
        repair=config.repair,
        sample=config.sample,
        keep_text=config.keep_text,
    )


class _Form:
    """All that one rubric needs to ask and to read, with key points or without."""

    def __init__(self, rubric: Rubric, *, points: bool) -> None:
        record = score_record(rubric, points=points)
        self.rubric = rubric
        self.points = points
        self.prompt = ScorePrompt(rubric, record)
        self.schema = json_schema(record)
        self.reader: StructuredReader[Any] = StructuredReader(
            record, anchor="scores", check=self._wrong
        )

    def _wrong(self, value: Any) -> str | None:
        """What the declared type cannot say."""
        if not value.reasoning.strip():
            return "reasoning is empty"
        for each in self.rubric.dimensions:
            given = getattr(value.scores, each.name)
            scale = self.rubric.scale_of(each)
            if not scale.holds(given):
                return (
                    f"scores.{each.name}: {given:g} is not one of the grades from {scale.low:g} "
                    f"to {scale.high:g} in steps of {scale.step:g}"
                )
        return None


class _Side(NamedTuple):
    """What came of one answer: scores, or `why` there are none."""

    keys: tuple[str, ...]
    scores: dict[str, float]
    completion: Completion
    why: UndecidedWhy | None = None
    detail: str | None = None


class Score:
    """Scores both answers of a pair by themselves; see the module and `ScoreConfig`.

    Args:
        judge: whom to ask.
        rubrics: what to score on; several are chosen from by the language of the question (the
            first is used where no language matches).
        seed: fixes the fences.
        tie_margin: totals this close, or closer, are a tie; 0 to 1, as a share of the scale.
        decide: "text" (the written grade) or "logprobs" (the expected grade).
        repair: ask once more when an answer cannot be read.
        sample: number of this draw; tells repeated calls of the same prompt apart.
        keep_text: keep the judge's words in the vote.

    Raises:
        ConfigError: no rubric, a margin out of range, or a judge that asks for no logprobs.
    """

    def __init__(
        self,
        judge: Judge,
        rubrics: Rubric | Sequence[Rubric],
        *,
        seed: int = 0,
        tie_margin: float = 0.0,
        decide: DecideBy = "text",
        repair: bool = True,
        sample: int = 0,
        keep_text: bool = False,
    ) -> None:
        chosen = [rubrics] if isinstance(rubrics, Rubric) else list(rubrics)
        if not chosen:
            raise ConfigError("a score strategy needs at least one rubric")
        if not 0.0 <= tie_margin < 1.0:
            raise ConfigError(f"tie_margin = {tie_margin}: use a share of the scale, 0 to below 1")
        check_decide(decide, judge)
        self._judge = judge
        self._rubrics = chosen
        self._forms = {
            (number, points): _Form(rubric, points=points)
            for number, rubric in enumerate(chosen)
            for points in (False, True)
        }
        self._seed = seed
        self._tie_margin = tie_margin
        self._decide: DecideBy = decide
        self._repair = repair
        self._sample = sample
        self._keep_text = keep_text

    @property
    def name(self) -> str:
        """`score@version`."""
        return f"score@{VERSION}"

    def spec(self) -> dict[str, Any]:
        """All that decides the result."""
        return {
            "kind": "score",
            "version": VERSION,
            "judge": judge_spec(self._judge),
            "rubrics": [rubric.spec() for rubric in self._rubrics],
            "prompts": [form.prompt.id for form in self._forms.values()],
            "tie_margin": self._tie_margin,
            "decide": self._decide,
            "repair": self._repair,
            "seed": self._seed,
            "sample": self._sample,
        }

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Score both answers at the same time.

        When one of them fails, the other is still waited for, so that the answer it has paid for
        reaches the call store.

        Raises:
            ProviderError: a call failed for good.
            RunStopped: the run ends.
        """
        form = self._form(pair)
        sides = await asyncio.gather(
            self._grade(form, pair, pair.response_a, "ab", ask),
            self._grade(form, pair, pair.response_b, "ba", ask),
            return_exceptions=True,
        )
        errors = [each for each in sides if isinstance(each, BaseException)]
        if errors:
            raise next((each for each in errors if not isinstance(each, ProviderError)), errors[0])
        a, b = sides
        assert isinstance(a, _Side)
        assert isinstance(b, _Side)
        return self._outcome(pair, a, b)

    def takes_items(self) -> bool:
        """It does: a score needs no second answer."""
        return True

    async def judge_item(self, item: Item, ask: Ask) -> Outcome:
        """Score one answer by itself, with the prompt that an answer of a pair would get.

        Returns:
            `Scored`, or undecided where the judge's words give no scores.

        Raises:
            ProviderError: a call failed for good.
            RunStopped: the run ends.
        """
        side = await self._grade(self._form(item), item, item.response, "ab", ask)
        vote = self._vote(
            side, side.keys if len(side.keys) > 1 else (), "none" if side.why else "na"
        )
        if side.why is not None:
            return Undecided(id=item.id, why=side.why, detail=side.detail, votes=(vote,))
        return Scored(id=item.id, scores=side.scores, votes=(vote,))

    def _form(self, pair: Subject) -> _Form:
        number = 0
        if len(self._rubrics) > 1:
            asked = pair.messages[-1].content if pair.messages else pair.question
            language = "zh" if mostly_chinese(asked) else "en"
            fitting = [n for n, each in enumerate(self._rubrics) if each.language == language]
            number = fitting[0] if fitting else 0
        return self._forms[number, bool(pair.key_points)]

    async def _grade(
        self, form: _Form, pair: Subject, answer: str, order: Order, ask: Ask
    ) -> _Side:
        """One answer's scores. `order` tells the sides apart: whose answer is shown (first)."""
        call = Call(
            judge=self._judge,
            messages=form.prompt.render(pair, answer, self._seed),
            prompt=form.prompt.id,
            sample=self._sample,
            pair_id=pair.id,
            order=order,
            schema=form.schema if self._judge.params.json_mode else None,
        )
        completion = await ask(call)
        keys = [completion.key or call.key()]
        read = self._read(form, pair, completion)
        # A recorded judge answers by pair and order: asked again, it could only repeat itself.
        again = self._repair and not self._judge.by_pair
        if again and read.why in ("unparsed", "truncated"):
            turns = form.prompt.repair(call.messages, completion.text, read.detail or "")
            prompt = f"{form.prompt.id}+repair"
            call = msgspec.structs.replace(call, messages=turns, prompt=prompt)
            completion = await ask(call)
            keys.append(completion.key or call.key())
            read = self._read(form, pair, completion)
        return self._side(form, completion, read, tuple(keys))

    def _read(self, form: _Form, pair: Subject, completion: Completion) -> Answered[Any]:
        read = form.reader.read(completion)
        if read.value is not None and form.points:
            wanted = list(range(1, len(pair.key_points) + 1))
            if sorted(each.point for each in read.value.key_points) != wanted:
                return Answered(
                    why="unparsed", detail=f"key_points must hold each of 1 to {wanted[-1]} once"
                )
        return read

    def _side(
        self, form: _Form, completion: Completion, read: Answered[Any], keys: tuple[str, ...]
    ) -> _Side:
        if read.value is None:
            return _Side(keys, {}, completion, read.why or "unparsed", read.detail)
        scores: dict[str, float] = {}
        for each in form.rubric.dimensions:
            score = float(getattr(read.value.scores, each.name))
            if self._decide == "logprobs":
                place = read.places[f"scores.{each.name}"]
                grades = form.rubric.scale_of(each).grades()
                expected = expected_grade(completion, place, grades)
                if expected.value is None:
                    detail = f"scores.{each.name}: {expected.missing}"
                    return _Side(keys, {}, completion, "unparsed", detail)
                score = expected.value
            scores[each.name] = round(score, 6)
        met = None
        if form.points:
            points = read.value.key_points
            met = sum(each.covered for each in points) / len(points)
        total = form.rubric.total(scores, met)
        more = {} if met is None else {"key_points": round(met, 6)}
        return _Side(keys, {**scores, **more, "total": total}, completion)

    def _outcome(self, pair: Pair, a: _Side, b: _Side) -> Outcome:
        unread = next((side for side in (a, b) if side.why is not None), None)
        pick: Pick = "none" if unread else _winner(a.scores, b.scores, self._tie_margin)
        vote = self._vote(unread or a, a.keys + b.keys, pick)
        if self._keep_text:
            both = f"{a.completion.text}\n\n{b.completion.text}"
            vote = msgspec.structs.replace(vote, key=a.keys[0], text=both)
        else:
            vote = msgspec.structs.replace(vote, key=a.keys[0])
        if unread:
            assert unread.why is not None
            which = "A" if unread is a else "B"
            detail = f"answer {which}: {unread.detail}"
            return Undecided(id=pair.id, why=unread.why, detail=detail, votes=(vote,))
        scores = {f"A.{name}": value for name, value in a.scores.items()}
        scores |= {f"B.{name}": value for name, value in b.scores.items()}
        winner = _winner(a.scores, b.scores, self._tie_margin)
        return Verdict(id=pair.id, winner=winner, basis="single", scores=scores, votes=(vote,))

    def _vote(self, side: _Side, keys: tuple[str, ...], pick: Pick) -> Vote:
        """The vote that stands for the calls `keys`, in the words of one side's last call."""
        return Vote(
            judge=self._judge.name,
            order="ab",
            pick=pick,
            why=side.why,
            key=side.keys[0],
            keys=keys,
            decided_by="logprobs" if self._decide == "logprobs" and side.why is None else None,
            finish_reason=side.completion.finish_reason,
            text=side.completion.text if self._keep_text else None,
        )

    def __repr__(self) -> str:
        return f"Score({self._judge.name!r}, {self._rubrics!r})"


def _winner(a: Mapping[str, float], b: Mapping[str, float], margin: float) -> Winner:
    lead = round(a["total"] - b["total"], 9)
    if abs(lead) <= margin:
        return "tie"
    return "A" if lead > 0 else "B"
