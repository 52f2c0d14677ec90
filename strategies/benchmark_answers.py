"""Two models answer the same dialogue: the fifth stage of `dikast benchmark build`.

Each is sent the conversation as it stands, with no words of ours, through the engine: stored,
paced and resumed like a judgement. An answer that was cut off, declined or empty is no answer.
Compares nothing.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any, Final

from dikast.engine.errors import ProviderError
from dikast.engine.model import Call, Judge, Message, Outcome, Pair, Undecided, Vote
from dikast.engine.ports import Ask
from dikast.strategies.pairwise import judge_spec
from dikast.strategies.reader import finish_of
from dikast.strategies.text import blank_thoughts

VERSION: Final = "1"
ANSWER_PROMPT: Final = f"benchmark-answer@{VERSION}"
"""Name and version of the prompt, which is the dialogue itself."""


class Answers:
    """A strategy that has a strong and a weak model answer the pair's question.

    The outcome is undecided ("abstained") with two votes that hold the answers, the strong
    model's first; where an answer is missing its vote has no text and says why.

    Args:
        strong: the stronger models; one is drawn for each dialogue, by seed and id.
        weak: the weaker ones, likewise.
        seed: of the draws.
    """

    def __init__(self, strong: Sequence[Judge], weak: Sequence[Judge], *, seed: int) -> None:
        self._strong = tuple(strong)
        self._weak = tuple(weak)
        self._seed = seed

    @property
    def name(self) -> str:
        """`benchmark_answers@version`."""
        return f"benchmark_answers@{VERSION}"

    def spec(self) -> dict[str, Any]:
        """All that decides the answers."""
        return {
            "kind": "benchmark_answers",
            "version": VERSION,
            "strong": [judge_spec(each) for each in self._strong],
            "weak": [judge_spec(each) for each in self._weak],
            "seed": self._seed,
        }

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Ask both. When one fails, the other's answer is still waited for and stored.

        Raises:
            ProviderError: a call failed for good.
            RunStopped: the run ends.
        """
        drawn = (
            _drawn(self._strong, self._seed, "strong", pair.id),
            _drawn(self._weak, self._seed, "weak", pair.id),
        )
        answers = await asyncio.gather(
            *(_answer(model, pair, ask) for model in drawn), return_exceptions=True
        )
        votes: list[Vote] = []
        errors: list[BaseException] = []
        for answer in answers:
            (errors if isinstance(answer, BaseException) else votes).append(answer)  # type: ignore[arg-type]
        if errors:
            # A stopped run goes first: the dialogue must stay "not run", not become failed.
            raise next((each for each in errors if not isinstance(each, ProviderError)), errors[0])
        return Undecided(id=pair.id, why="abstained", detail="answered", votes=tuple(votes))

    def __repr__(self) -> str:
        return f"Answers({len(self._strong)} strong, {len(self._weak)} weak)"


def _drawn(models: Sequence[Judge], seed: int, side: str, pair_id: str) -> Judge:
    data = f"{side}\x1f{pair_id}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(data, digest_size=8, key=str(seed).encode()[:64]).digest()
    return models[int.from_bytes(digest, "big") % len(models)]


async def _answer(model: Judge, pair: Pair, ask: Ask) -> Vote:
    call = Call(
        judge=model,
        messages=pair.messages or (Message(role="user", content=pair.question),),
        prompt=ANSWER_PROMPT,
        pair_id=pair.id,
    )
    completion = await ask(call)
    finish = finish_of(completion)
    text, thinking = blank_thoughts(completion.text)
    why: str | None = None
    if finish.refused:
        why = "refused"
    elif finish.cut or thinking:
        why = "truncated"
    elif not text.strip():
        why = "empty"
    return Vote(
        judge=model.name,
        order="ab",
        pick="na" if why is None else "none",
        why=why,
        key=completion.key or call.key(),
        text=text.strip() if why is None else None,
    )
