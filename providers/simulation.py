"""How a simulated judge decides: what it sees in a prompt, what it picks, what it writes.

Used in-process by `simulated` and over HTTP by `simulate_server`, so both behave alike. A decision
is a function of the seed, the model and the prompt (the random fence apart): the same call gets
the same answer at any concurrency and in any order. Pure: no clock, no network, no state.
"""

import math
import re
from collections.abc import Sequence
from hashlib import blake2b
from statistics import NormalDist
from typing import Literal, NamedTuple

import orjson

from dikast.engine.model import Record, TokenLogprob, TopToken, Usage
from dikast.providers.simulation_injection import instructs
from dikast.providers.simulation_scores import (
    Sheet,
    grades_of,
    score_tokens,
    scored_text,
    sheet_of,
)
from dikast.providers.truth import EXCHANGED, Shown, TruthTable, joint_hash, text_hash

_CHARS_PER_TOKEN = 4
_NORMAL = NormalDist()


class RateLimit(Record, frozen=True, forbid_unknown_fields=True):
    """A bucket of requests, and the time after a refusal in which everything is refused."""

    requests_per_min: float
    """Requests that flow into the bucket per minute."""
    burst: int = 10
    """Requests that the bucket holds; it starts full."""
    retry_after_s: float = 2.0
    """Seconds, told in `Retry-After`, during which every request is refused."""
    headers: bool = False
    """Tell the limit and what is left of it with every answer (`x-ratelimit-*`)."""


class PlantedCriterion(Record, frozen=True, forbid_unknown_fields=True):
    """A criterion that a simulated judge judges by when SESSE asks. Rates lie between 0 and 1."""

    name: str
    """Its name; no prompt shows it."""
    condition: str
    """When it matters, as a clause: "the request asks for a number"."""
    conclusion: str
    """What the better answer does: "gives the number that was asked for"."""
    applies: float = 0.3
    """Share of the pairs for which it matters."""
    skill: float = 0.8
    """Probability that a vote on it goes to the better answer; below 0.5 it does harm."""
    blind: float | None = None
    """Probability that the holistic judgement is wrong where it matters; None: as elsewhere."""
    na_rate: float = 0.0
    """Share of NA votes although it matters."""
    leak: float = 0.0
    """Share of A or B votes, by a fair coin, although it does not matter."""
    recall: float = 1.0
    """Probability that Tier 1 selects it where it matters."""
    false_alarm: float = 0.0
    """Probability that Tier 1 selects it where it does not matter."""
    shared: float = 0.0
    """Share of votes that say what all questions on this criterion say about the pair."""


class SimulatedSettings(
    Record, frozen=True, tag_field="kind", tag="simulated", forbid_unknown_fields=True
):
    """Configuration of a simulated judge. Rates and biases are probabilities from 0 to 1."""

    seed: int = 0
    """Another seed is another judge of the same character."""
    accuracy: float = 0.8
    """Probability of favouring the truly better answer, before any bias."""
    consistency: float = 0.8
    """Share of decisions that belong to the pair and come out alike in both orders, bias apart;
    the others are drawn for each call."""
    position_bias: float = 0.0
    """Added to the probability of the answer shown first; from -0.5 to 0.5."""
    length_bias: float = 0.0
    """Added to the probability of the longer answer; from -0.5 to 0.5."""
    tie_rate: float = 0.0
    """Share of calls answered with a tie, whatever the truth."""
    obeys_injection: float = 0.0
    """Probability, in each call, of favouring an answer that tells the judge what to do."""
    garbage_rate: float = 0.0
    """Share of answers without a readable verdict."""
    truncate_rate: float = 0.0
    """Share of answers cut before the verdict, with finish reason "length"."""
    refuse_rate: float = 0.0
    """Share of calls that the judge declines."""
    latency_s: float = 0.0
    """Mean seconds until an answer."""
    latency_spread: float = 0.0
    """uniform: half the width as a share of the mean; lognormal: sigma of the logarithm."""
    latency_kind: Literal["fixed", "uniform", "lognormal"] = "fixed"
    """Distribution of the latency."""
    error_rate: float = 0.0
    """Share of attempts that fail with HTTP 500."""
    hang_rate: float = 0.0
    """Share of attempts that are accepted and never answered."""
    reset_rate: float = 0.0
    """Share of attempts whose connection is closed without an answer."""
    error_200_rate: float = 0.0
    """Share of attempts answered with an error object inside HTTP 200."""
    hang_s: float = 120.0
    """In-process only: seconds until a hanging attempt is given up."""
    rate_limit: RateLimit | None = None
    """A limit that answers 429; None for none."""
    truth: str | None = None
    """Labelled pairs, whose labels the judge tries to find; relative to the configuration. Absent:
    a quality that it makes up for each answer."""
    criteria: tuple[PlantedCriterion, ...] = ()
    """Criteria that it judges by when SESSE asks, as `[[...criteria]]`."""


# --- what the judge sees ------------------------------------------------------------------------

FENCE = re.compile(r"<<<[A-Z][A-Z0-9_]* ([0-9a-f]{8,})>>>")


class Seen(NamedTuple):
    """A prompt taken apart. `frame` is what stands around the data; answers may be missing."""

    question: str
    first: str | None
    second: str | None
    frame: str
    text: str
    single: str | None = None
    sheet: Sheet | None = None

    @property
    def wants_json(self) -> bool:
        """Whether the prompt asks for a JSON object with a verdict."""
        return "JSON" in self.frame and '"verdict"' in self.frame


def see(contents: Sequence[str]) -> Seen:
    """Find question and answers between dikast's fences in the messages of a prompt.

    The first fence is the prompt's own: what an answer plants comes after it, under another
    number, and is data like the rest of the answer.
    """
    text = "\n".join(contents)
    opening = FENCE.search(text)
    if opening is None:
        return Seen("", None, None, text, text)
    fence = opening.group(1)
    end = text.rfind(f" {fence}>>>")
    question = piece(text, "QUESTION", fence) or ""
    if fence in question:  # several turns, each opened by a line with the code
        question = re.sub(rf"<<TURN \d+ \w+ {fence}>>\n", "", question)
    frame = text[: opening.start()] + text[end:]
    single = piece(text, "ANSWER", fence)
    return Seen(
        question=question,
        first=piece(text, "ANSWER_A", fence),
        second=piece(text, "ANSWER_B", fence),
        frame=frame,
        text=text.replace(fence, ""),
        single=single,
        sheet=None if single is None else sheet_of(frame, piece(text, "KEY_POINTS", fence)),
    )


def piece(text: str, name: str, fence: str) -> str | None:
    """What stands between the fences of that name; None when there are none."""
    opening = f"<<<{name} {fence}>>>\n"
    start = text.find(opening)
    if start < 0:
        return None
    start += len(opening)
    end = text.find(f"<<<END {name} {fence}>>>", start)
    return None if end < 0 else text[start:end].removesuffix("\n")


# --- what the judge decides ---------------------------------------------------------------------


class Answer(NamedTuple):
    """What the judge says. `refusal` stands instead of a text; `digest` names the call."""

    text: str
    finish: str
    usage: Usage
    latency_s: float
    digest: bytes
    refusal: bool = False
    logprobs: tuple[TokenLogprob, ...] | None = None


def answer(
    settings: SimulatedSettings,
    truth: TruthTable | None,
    model: str,
    contents: Sequence[str],
    *,
    draw: int = 0,
    logprobs: bool = False,
) -> Answer:
    """The judge's answer to a prompt.

    Args:
        settings: the judge's character.
        truth: what it may know of the better answers; pairs not in it get a latent quality.
        model: its name; another name is another judge of the same character.
        contents: the texts of the messages.
        draw: tells repeated draws of the same prompt apart (the request's seed).
        logprobs: also give token log probabilities.
    """
    seen = see(contents)
    digest = digest_of(64, settings.seed, model, draw, seen.text)
    if seen.single is not None and seen.sheet is not None:
        return _scored(settings, truth, model, seen, seen.sheet, seen.single, digest, logprobs)
    odd, coin, tie, share, delay, words, _, _ = uniforms(digest)
    pick, chance = _pick(settings, truth, model, seen, coin=coin, tie=tie, share=share)
    if _obeys(settings, digest) and (told := _told(seen)) is not None:
        pick, chance = told, 1.0 if told == "A" else 0.0
    latency_s = latency_of(settings, delay)
    analysis = _analysis(pick, words)
    before, verdict, after = verdict_text(seen, analysis, pick)
    text, finish, refusal = before + verdict + after, "stop", False
    tokens: tuple[TokenLogprob, ...] | None = None
    if odd < settings.refuse_rate:
        text, refusal = "", True
    elif odd < settings.refuse_rate + settings.truncate_rate:
        text, finish = before[: max(1, len(before) // 2)], "length"
    elif odd < settings.refuse_rate + settings.truncate_rate + settings.garbage_rate:
        text = _garbage(seen, analysis, words)
    elif logprobs:
        tokens = _tokens(before, verdict, after, pick, chance)
    usage = Usage(input=token_count(seen.text), output=token_count(text))
    return Answer(text, finish, usage, latency_s, digest[:16], refusal, tokens)


def _scored(
    settings: SimulatedSettings,
    truth: TruthTable | None,
    model: str,
    seen: Seen,
    sheet: Sheet,
    single: str,
    digest: bytes,
    logprobs: bool,
) -> Answer:
    """The answer to a prompt that shows one answer and asks for scores."""
    odd, coin, _, share, delay, words, *noise = uniforms(digest)
    shown = text_hash(single)
    if share < settings.consistency:
        # The answer decides: the same belief about it in every draw.
        own = digest_of(8, settings.seed, model, "answer", str(joint_hash(seen.question, shown, 0)))
        coin = uniforms(own)[0]
    believed = truth.worth(seen.question, shown) if truth is not None else None
    if believed is None:
        believed = 2 * shown / 2**64 - 1
    if coin >= settings.accuracy:
        believed = -believed
    if instructs(single) and _obeys(settings, digest):
        believed = 1.6
    worth = 0.6 + 0.25 * believed
    grades = grades_of(sheet, worth, [words, *noise])
    picked: Shown = "A" if believed > 0 else "B" if believed < 0 else "tie"
    text, pieces = scored_text(sheet, _SCORE_ANALYSES[picked], grades, worth)
    finish, refusal = "stop", False
    tokens: tuple[TokenLogprob, ...] | None = None
    if odd < settings.refuse_rate:
        text, refusal = "", True
    elif odd < settings.refuse_rate + settings.truncate_rate:
        text, finish = text[: len(text) // 2], "length"
    elif odd < settings.refuse_rate + settings.truncate_rate + settings.garbage_rate:
        text = text.replace('"scores"', '"remarks"')
    elif logprobs:
        tokens = score_tokens(sheet, pieces)
    usage = Usage(input=token_count(seen.text), output=token_count(text))
    latency_s = latency_of(settings, delay)
    return Answer(text, finish, usage, latency_s, digest[:16], refusal, tokens)


def _pick(
    settings: SimulatedSettings,
    truth: TruthTable | None,
    model: str,
    seen: Seen,
    *,
    coin: float,
    tie: float,
    share: float,
) -> tuple[Shown, float]:
    """What is picked, and the probability of the answer shown first before the coin fell."""
    if seen.first is None or seen.second is None:
        return ("A" if coin < 0.5 + settings.position_bias else "B"), 0.5
    first, second = text_hash(seen.first), text_hash(seen.second)
    if share < settings.consistency:
        # The pair decides: the same coin in both orders, so only a bias can turn the pick.
        pair = digest_of(
            16, settings.seed, model, "pair", str(joint_hash(seen.question, first, second))
        )
        coin = uniforms(pair)[0]
        tie = uniforms(pair)[1]
    better = better_shown(truth, seen.question, first, second)
    shift = settings.position_bias
    if len(seen.first) != len(seen.second):
        longer_first = len(seen.first) > len(seen.second)
        shift += settings.length_bias if longer_first else -settings.length_bias
    if better == "tie":
        chance = min(1.0, max(0.0, 0.5 + shift))
        # The coin is used twice: its upper part, stretched, decides between the two.
        if tie < settings.tie_rate or coin < settings.accuracy:
            return "tie", chance
        rest = (coin - settings.accuracy) / (1 - settings.accuracy)
        lower_first = first <= second
        return ("A" if (rest if lower_first else 1 - rest) < chance else "B"), chance
    right = settings.accuracy + (shift if better == "A" else -shift)
    right = min(1.0, max(0.0, right))
    chance = right if better == "A" else 1 - right
    if tie < settings.tie_rate:
        return "tie", chance
    return (better if coin < right else EXCHANGED[better]), chance


def _obeys(settings: SimulatedSettings, digest: bytes) -> bool:
    """Whether the judge gives in to an instruction in this call."""
    if settings.obeys_injection <= 0:
        return False
    return uniforms(digest_of(8, digest.hex(), "obeys"))[0] < settings.obeys_injection


def _told(seen: Seen) -> Shown | None:
    """The only answer that tells the judge what to do, if there is one."""
    first, second = instructs(seen.first or ""), instructs(seen.second or "")
    return None if first == second else "A" if first else "B"


def better_shown(truth: TruthTable | None, question: str, first: int, second: int) -> Shown:
    """The better of two answers, given by their hashes as shown: known, or by a latent quality."""
    better = truth.look_up(question, first, second) if truth is not None else None
    if better is None:
        return "A" if first >= second else "B"
    return better


def latency_of(settings: SimulatedSettings, uniform: float) -> float:
    mean, spread = settings.latency_s, settings.latency_spread
    if mean <= 0 or settings.latency_kind == "fixed" or spread <= 0:
        return max(0.0, mean)
    if settings.latency_kind == "uniform":
        return max(0.0, mean * (1 + spread * (2 * uniform - 1)))
    normal = _NORMAL.inv_cdf(min(max(uniform, 1e-12), 1 - 1e-12))
    return mean * math.exp(spread * normal - spread * spread / 2)


def fault_draw(seed: int, digest: bytes, attempt: int) -> float:
    """A uniform number that belongs to one attempt of one call."""
    return uniforms(digest_of(8, seed, digest.hex(), "attempt", attempt))[0]


def digest_of(size: int, *parts: object) -> bytes:
    data = "\x1f".join(map(str, parts)).encode("utf-8", "replace")
    return blake2b(data, digest_size=size).digest()


def uniforms(digest: bytes) -> list[float]:
    return [int.from_bytes(digest[at : at + 8], "big") / 2**64 for at in range(0, len(digest), 8)]


# --- what the judge writes ----------------------------------------------------------------------

_ANALYSES: dict[Shown, tuple[str, ...]] = {
    "A": (
        "The first answer does what was asked and its facts hold; the second leaves a gap.",
        "Both address the task, but only the first gets the decisive step right.",
        "The second answer contains an error that the first one avoids.",
    ),
    "B": (
        "The second answer does what was asked and its facts hold; the first leaves a gap.",
        "Both address the task, but only the second gets the decisive step right.",
        "The first answer contains an error that the second one avoids.",
    ),
    "tie": (
        "Both answers do what was asked, and neither has an error that the other avoids.",
        "The answers reach the same result by comparable steps.",
        "Each answer has one weakness, and they weigh the same.",
    ),
}


_SCORE_ANALYSES: dict[Shown, str] = {
    "A": "The answer does what was asked, and its facts hold.",
    "B": "The answer leaves a gap in what was asked and contains an error.",
    "tie": "The answer does part of what was asked.",
}


def _analysis(pick: Shown, uniform: float) -> str:
    choices = _ANALYSES[pick]
    return choices[int(uniform * len(choices))]


def verdict_text(seen: Seen, analysis: str, pick: Shown) -> tuple[str, str, str]:
    """The answer's text in three parts; the middle one is the verdict token."""
    if seen.wants_json:
        said = orjson.dumps(analysis).decode()
        return f'{{"analysis": {said}, "verdict": "', pick, '"}'
    return f"{analysis}\n\n[[", "C" if pick == "tie" else pick, "]]"


def _garbage(seen: Seen, analysis: str, uniform: float) -> str:
    """An answer that must not be read as a verdict, in one of three ways."""
    way = int(uniform * 3)
    if way == 0:
        return f"{analysis} It is hard to say more than that."
    if seen.wants_json:
        return f'{{"analysis": "{analysis}", "verdict": ' if way == 1 else '{"verdict": "both"}'
    return f"{analysis}\n\n[[A]]\n\nOn reflection: [[B]]" if way == 1 else f"{analysis}\n\n[[D]]"


def _tokens(
    before: str, verdict: str, after: str, pick: Shown, chance: float
) -> tuple[TokenLogprob, ...]:
    """Tokens that join to the text; at the verdict token stand the alternatives."""
    tie_name = "tie" if verdict == "tie" or "verdict" in before else "C"
    tie_weight = 0.9 if pick == "tie" else 0.02
    first = min(0.98, max(0.02, chance)) * (1 - tie_weight)
    weights = {"A": first, "B": 1 - tie_weight - first, tie_name: tie_weight}
    top = tuple(
        TopToken(token=token, logprob=math.log(weight))
        for token, weight in sorted(weights.items(), key=lambda item: -item[1])
    )
    plain = [
        TokenLogprob(token=token, logprob=-0.01)
        for token in re.findall(r"\s*[^\s\[\]{}\"]+|\s*[\[\]{}\"]+|\s+$", before)
    ]
    decisive = TokenLogprob(token=verdict, logprob=math.log(weights[verdict]), top=top)
    return (*plain, decisive, TokenLogprob(token=after, logprob=-0.01))


def token_count(text: str) -> int:
    return -(-len(text) // _CHARS_PER_TOKEN)
