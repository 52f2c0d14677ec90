"""The records that travel: a pair goes in, calls go out, completions come back, an outcome leaves.

Everything that crosses a boundary between packages is one of these frozen records. They know
nothing of providers, strategies, files or time. Stored records follow two rules: new fields get
a default, and no field ever changes its type.
"""

import hashlib
from collections.abc import Callable
from typing import Any, Literal

import msgspec

Winner = Literal["A", "B", "tie"]
Pick = Literal["A", "B", "tie", "na", "none"]
Order = Literal["ab", "ba"]
Basis = Literal["single", "agree", "both_tie", "disagree", "votes"]
UndecidedWhy = Literal["unparsed", "truncated", "refused", "no_quorum", "abstained"]

_FLIPPED: dict[str, str] = {"A": "B", "B": "A"}


def flip_winner(winner: Winner) -> Winner:
    """The same conclusion, seen with the two answers exchanged."""
    return _FLIPPED.get(winner, winner)  # type: ignore[return-value]


def flip_pick(pick: Pick) -> Pick:
    """The same pick, seen with the two answers exchanged; tie, na and none stay."""
    return _FLIPPED.get(pick, pick)  # type: ignore[return-value]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all records: immutable, named fields, defaults left out when written."""


class Message(Record, frozen=True):
    """One turn of a chat: `role` is "system", "user" or "assistant"."""

    role: str
    content: str


class Pair(Record, frozen=True):
    """Two answers to one question, to be compared.

    `question` is the last user turn as text; `messages` holds the whole conversation where there
    is more than one turn (then `question` may be empty). `label` is the human or constructed
    truth, never shown to a judge. `meta` travels through untouched.
    """

    id: str
    response_a: str
    response_b: str
    question: str = ""
    messages: tuple[Message, ...] = ()
    reference: str | None = None
    key_points: tuple[str, ...] = ()
    category: str | None = None
    model_a: str | None = None
    model_b: str | None = None
    label: Winner | None = None
    meta: dict[str, Any] = {}

    def swapped(self) -> "Pair":
        """The same pair with the answers, models and label exchanged; the id stays."""
        return msgspec.structs.replace(
            self,
            response_a=self.response_b,
            response_b=self.response_a,
            model_a=self.model_b,
            model_b=self.model_a,
            label=flip_winner(self.label) if self.label else None,
        )


class Item(Record, frozen=True):
    """One answer to one question, to be scored by itself (pointwise); fields as in `Pair`.

    `grade` is what people gave the answer, on whatever scale, never shown to a judge.
    """

    id: str
    response: str
    question: str = ""
    messages: tuple[Message, ...] = ()
    reference: str | None = None
    key_points: tuple[str, ...] = ()
    category: str | None = None
    model: str | None = None
    grade: float | None = None
    meta: dict[str, Any] = {}


Subject = Pair | Item
"""What a strategy may be asked about."""


class BadRow(Record, frozen=True):
    """An input row that is no pair and no item; `reason` is that of its failed outcome."""

    message: str
    id: str | None = None
    field: str | None = None
    reason: str = "bad_row"


class Row(Record, frozen=True):
    """One input row with its place; `item` is the pair or item, or why there is none."""

    item: Pair | Item | BadRow
    file: str = ""
    line: int = 0


class Params(Record, frozen=True):
    """Sampling parameters of a judge; None means "not sent, the provider's default"."""

    temperature: float | None = 0.0
    top_p: float | None = None
    max_tokens: int | None = 1024
    seed: int | None = None
    reasoning_effort: str | None = None
    logprobs: bool = False
    top_logprobs: int | None = None
    json_mode: bool = False
    extra: dict[str, Any] = {}


class Prices(Record, frozen=True):
    """US dollars per million tokens, by token class. Cached input never counts twice."""

    input: float = 0.0
    cached_input: float | None = None
    cache_write: float | None = None
    output: float = 0.0


class Judge(Record, frozen=True):
    """A named judge: which model behind which provider, asked how.

    `family` names the model family (for self-preference checks). `by_pair` makes the pair id and
    the order part of the call's key: needed where the answer depends on them and not on the
    prompt alone (recorded outputs). `endpoint` says what stands behind the provider's name (its
    address, or a hash of its settings): two servers may call different models by one name.
    """

    name: str
    provider: str
    model: str
    params: Params = Params()
    prices: Prices | None = None
    family: str | None = None
    by_pair: bool = False
    endpoint: str = ""


class Usage(Record, frozen=True):
    """Token counts by class. `input` includes `cached_input`; `output` includes `reasoning`."""

    input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """The sum of two usages, class by class."""
        return Usage(
            input=self.input + other.input,
            cached_input=self.cached_input + other.cached_input,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )

    def cost_usd(self, prices: Prices) -> float:
        """What these tokens cost, in US dollars; a class without a price costs as plain input."""
        cached = prices.input if prices.cached_input is None else prices.cached_input
        write = prices.input if prices.cache_write is None else prices.cache_write
        plain = max(0, self.input - self.cached_input - self.cache_write)
        total = (
            plain * prices.input
            + self.cached_input * cached
            + self.cache_write * write
            + self.output * prices.output
        )
        return total / 1_000_000


class Call(Record, frozen=True):
    """One question to one judge. `key` is the content hash under which it is stored.

    `prompt` is the template's name, version and hash. `sample` tells repeated draws apart.
    `pair_id` and `order` are for tracing (and part of the key when the judge is `by_pair`).
    """

    judge: Judge
    messages: tuple[Message, ...]
    prompt: str
    sample: int = 0
    pair_id: str = ""
    order: Order = "ab"
    schema: dict[str, Any] | None = None

    def key(self) -> str:
        """32 hex digits: SHA-256 (cut) of all that decides the answer.

        Lone surrogates, which no wire format can carry, are hashed by their own bytes, so that a
        damaged text has a key like any other.
        """
        try:
            encoded = _KEY_ENCODER.encode(self._what(str))
        except UnicodeEncodeError:
            encoded = _KEY_ENCODER.encode(self._what(_raw_bytes))
        return hashlib.sha256(encoded).hexdigest()[:32]

    def _what(self, text: Callable[[str], str | bytes]) -> tuple[Any, ...]:
        """All that decides the answer; `text` says how texts from outside are written."""
        messages: Any = self.messages
        if text is not str:
            messages = tuple((text(each.role), text(each.content)) for each in self.messages)
        return (
            self.judge.provider,
            self.judge.endpoint,
            self.judge.model,
            self.judge.params,
            messages,
            self.prompt,
            self.sample,
            self.schema,
            (text(self.pair_id), self.order) if self.judge.by_pair else None,
        )


def _raw_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class TopToken(Record, frozen=True):
    """One candidate token with its natural log probability."""

    token: str
    logprob: float


class TokenLogprob(Record, frozen=True):
    """One generated token with the candidates the provider listed beside it."""

    token: str
    logprob: float
    top: tuple[TopToken, ...] = ()


class Completion(Record, frozen=True):
    """A judge's answer. `served_by` is the model name the provider reported.

    `key` is the key of the call it answers, filled in by the gateway.
    """

    text: str
    finish_reason: str | None = None
    usage: Usage = Usage()
    logprobs: tuple[TokenLogprob, ...] | None = None
    latency_s: float = 0.0
    served_by: str | None = None
    from_store: bool = False
    key: str | None = None


class Vote(Record, frozen=True):
    """What one judge call said, mapped back to the pair's own A and B: a pick, never a grade.

    `why` says why there is no pick when `pick` is "none". `text` is kept only when asked for.
    `keys` lists the calls behind the vote where there is more than one. `decided_by` is "logprobs"
    where the pick or the scores came from token probabilities, None where from the words.
    `probabilities` holds those of the verdicts ("A", "B", "tie"), where the provider listed them.
    A vote on one question of a library (SESSE) names it in `question`, its cluster in `cluster` and
    its place there in `rank`; `usage` holds the tokens of its calls.
    """

    judge: str
    order: Order
    pick: Pick
    why: str | None = None
    key: str | None = None
    confidence: float | None = None
    finish_reason: str | None = None
    text: str | None = None
    keys: tuple[str, ...] = ()
    decided_by: Literal["logprobs"] | None = None
    probabilities: dict[str, float] = {}
    question: str | None = None
    cluster: str | None = None
    rank: int | None = None
    usage: Usage | None = None

    def unswapped(self) -> "Vote":
        """The vote of a judgement made on the swapped pair, in the terms of the pair itself."""
        return msgspec.structs.replace(
            self,
            pick=flip_pick(self.pick),
            order="ba" if self.order == "ab" else "ab",
            probabilities={
                _FLIPPED.get(pick, pick): share for pick, share in self.probabilities.items()
            },
        )


class Marks(Record, frozen=True):
    """How sure and how contested a verdict of several votes is; formulas in docs/confidence.md.

    `votes` gave a verdict, `unread` were asked and gave none (unreadable, refused or failed),
    `excluded` were kept from voting by a rule, `spared` were not asked because the result could
    no longer change. `stopped` says how sure that was: "exact", or "risk" with the probability
    `risk` that the full vote has another result. `entropy_bits` is the Shannon entropy of the
    shares of A, B and tie, 0 to 1.585. `majority_share` is the share of the most common pick and
    `margin` its lead over the next. `spread` is the standard deviation of the votes with A = 1,
    tie = 0, B = -1, 0 to 1. `stability` is the share of the most common result among all that were
    asked, where no verdict is a result of its own. `level`: the tie stands because the votes
    cancel out. `score_spread` is the standard deviation of each dimension's scores.
    """

    votes: int
    unread: int = 0
    excluded: int = 0
    spared: int = 0
    stopped: Literal["exact", "risk"] | None = None
    risk: float = 0.0
    entropy_bits: float = 0.0
    majority_share: float = 1.0
    margin: float = 1.0
    spread: float = 0.0
    stability: float = 1.0
    level: bool = False
    score_spread: dict[str, float] = {}


class Part(Record, frozen=True):
    """What one part of a compound strategy concluded: a member, a sample, a rung.

    `why` says why there is no pick, or why a rung was not the last. `cost_usd` is the price of
    its calls, bought now or before. `parts` are its own parts. `scores` are there where it
    scored a single answer (then `pick` is "na").
    """

    name: str
    pick: Pick
    why: str | None = None
    weight: float = 1.0
    calls: int = 0
    cost_usd: float = 0.0
    parts: tuple["Part", ...] = ()
    scores: dict[str, float] = {}

    def unswapped(self) -> "Part":
        """The part of a judgement of the swapped pair, in the terms of the pair itself."""
        return msgspec.structs.replace(
            self, pick=flip_pick(self.pick), parts=tuple(part.unswapped() for part in self.parts)
        )


class LengthGuard(Record, frozen=True):
    """What a length guard did to one pair or item; recorded, so that it can be told apart.

    `clause` tells of the sentence that length is no criterion: "declared" by the prompt, "added"
    to it, "removed" from it, or "absent". `removed_a` and `removed_b` count the characters that
    each rule took out of an answer before it was shown (a single answer stands under a).
    """

    clause: Literal["declared", "added", "removed", "absent"]
    removed_a: dict[str, int] = {}
    removed_b: dict[str, int] = {}

    def unswapped(self) -> "LengthGuard":
        """The same in the terms of the pair, where the guard saw it swapped."""
        return msgspec.structs.replace(self, removed_a=self.removed_b, removed_b=self.removed_a)


class _OutcomeBase(Record, frozen=True, tag_field="kind"):
    """What every outcome says besides its result; filled in by the scheduler, not by strategies.

    `strategy` is name@version, `spec` the hash of all that decides the result, `calls` the
    number of judge calls used, `stored_calls` those of them that came from the call store.
    `parts` (members, samples, rungs) and `marks` are there where several votes made one result,
    `length_guard` where one was at work.
    `notes` holds what a strategy notes for its own reports, the same in either order.
    """

    id: str
    votes: tuple[Vote, ...] = ()
    parts: tuple[Part, ...] = ()
    marks: Marks | None = None
    length_guard: LengthGuard | None = None
    usage: Usage = Usage()
    cost_usd: float = 0.0
    calls: int = 0
    stored_calls: int = 0
    strategy: str = ""
    spec: str = ""
    simulated: bool = False
    label: Winner | None = None
    category: str | None = None
    model_a: str | None = None
    model_b: str | None = None
    meta: dict[str, Any] = {}
    file: str | None = None
    line: int | None = None
    notes: dict[str, Any] = {}

    def _turned(self) -> dict[str, Any]:
        """The fields that every outcome of a swapped pair has to turn back."""
        guard = self.length_guard
        return {
            "votes": tuple(vote.unswapped() for vote in self.votes),
            "parts": tuple(part.unswapped() for part in self.parts),
            "length_guard": guard and guard.unswapped(),
        }


class Verdict(_OutcomeBase, frozen=True, tag="verdict", kw_only=True):
    """A decided pair. `basis` tells an agreed tie from two orders that disagree.

    `scores` holds what each answer was given: "A.accuracy", "B.accuracy", "A.total", and so on.
    `raw_confidence` is the number that a calibration turned into `confidence`.
    Where they were put on another scale, `correction` names the map (method@hash; its parameters
    are in the manifest) and `raw_scores` holds what the judge gave.
    `consistent` says whether both orders of a vote over orders chose alike, where that is known;
    `rationale` is the judges' reason in short, where it was asked for.
    """

    winner: Winner
    basis: Basis = "single"
    confidence: float | None = None
    raw_confidence: float | None = None
    scores: dict[str, float] = {}
    raw_scores: dict[str, float] = {}
    correction: str | None = None
    consistent: bool | None = None
    rationale: str | None = None

    def unswapped(self) -> "Verdict":
        """The verdict on the swapped pair, in the terms of the pair itself."""
        return msgspec.structs.replace(
            self,
            winner=flip_winner(self.winner),
            scores={_flip_side(name): score for name, score in self.scores.items()},
            raw_scores={_flip_side(name): score for name, score in self.raw_scores.items()},
            **self._turned(),
        )


def _flip_side(name: str) -> str:
    """A score's name with the side exchanged; names without a side stay."""
    side, dot, rest = name.partition(".")
    return f"{_FLIPPED.get(side, side)}{dot}{rest}" if dot else name


class Scored(_OutcomeBase, frozen=True, tag="scored", kw_only=True):
    """A single answer with its scores, by dimension and as "total"; it has no winner.

    `model` and `grade` are those of the item.
    """

    scores: dict[str, float]
    model: str | None = None
    grade: float | None = None

    def unswapped(self) -> "Scored":
        """A single answer has no other order."""
        return self


class Undecided(_OutcomeBase, frozen=True, tag="undecided", kw_only=True):
    """The judges answered, but their words give no verdict; `why` says how."""

    why: UndecidedWhy
    detail: str | None = None

    def unswapped(self) -> "Undecided":
        """The same, in the terms of the pair itself."""
        return msgspec.structs.replace(self, **self._turned())


class Failed(_OutcomeBase, frozen=True, tag="failed", kw_only=True):
    """No answer could be had. `reason` is an `ErrorKind`, "duplicate_id", "bad_row" or "bug"."""

    reason: str
    message: str
    attempts: int = 0

    def unswapped(self) -> "Failed":
        """The same, in the terms of the pair itself."""
        return msgspec.structs.replace(self, **self._turned())


Outcome = Verdict | Scored | Undecided | Failed

_KEY_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
