"""A judge that decides as one person would: the person's preferences vote on every pair.

A strategy like any other. Each voting preference is put to the judge in both orders; picks are
counted by answer and not by place, so that the two orders of a pair give one verdict. A topic
without an entry, or with one that showed no gain, goes to the plain judge. Source: SenseJudge
(arXiv 2606.03189, section 3.2.3); one merged verdict, the weights and abstention are our own.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from dikast.engine.errors import ConfigError
from dikast.engine.model import Judge, Outcome, Pair, Part, Undecided, Verdict, Vote
from dikast.engine.ports import Ask, Strategy
from dikast.strategies.aggregate import Tally, exact, tally
from dikast.strategies.committee import Member, committee
from dikast.strategies.early_stop import early_stop
from dikast.strategies.node import Node
from dikast.strategies.pairwise import Pairwise
from dikast.strategies.preferences.profile import Entry, Preference, Profile, ProfileLoader
from dikast.strategies.preferences.writer import preferences_text
from dikast.strategies.prompts import PromptTemplate, TemplateLoader
from dikast.strategies.swap import swap

VERSION = "1"
TEMPLATES = ("preference-en", "preference-zh")
"""The shipped templates that ask with preferences; the language of the question chooses."""


class PreferencesConfig(Node, frozen=True, kw_only=True, tag="preferences"):
    """`kind = "preferences"`: judges as the person of a profile would.

    `judge` is a judge's name; it must be the model the profile was fitted with, unless
    `any_judge` is true. `profile` is the path of the profile. `template` is the path of a
    template that names {{preferences}}; by default the shipped ones. `topic` says which field
    of a pair names its topic: "category" (default) or a field of `meta`. `abstain_below` is the
    share of the votes below which the pair is left undecided. With `early_stop` preferences are
    asked one after the other until the winner is settled. `rationale` keeps a short reason.
    """

    judge: str
    profile: str
    template: str = ""
    topic: str = "category"
    abstain_below: float = 0.0
    early_stop: bool = False
    any_judge: bool = False
    rationale: bool = False

    def asks(self) -> tuple[str, ...]:
        """Its judge."""
        return (self.judge,)

    def prompts(self) -> tuple[str, ...]:
        """Its template, if it is not the shipped one."""
        return (self.template,) if self.template else ()

    def needs(self) -> tuple[str, ...]:
        """The profile."""
        return (f"the profile {self.profile} (dikast preferences fit)",)


def preference_judge(
    judge: Judge,
    templates: Sequence[PromptTemplate],
    *,
    seed: int,
    preferences: str = "",
    examples: str = "",
) -> Strategy:
    """One judge in both orders, told of preferences, of examples, or of neither (plain).

    Args:
        judge: who is asked.
        templates: those of `TEMPLATES`, or one that names what is given.
        seed: decides the fences.
        preferences: see `preferences_text`; empty for none.
        examples: see `examples_text`; empty for none.

    Raises:
        ConfigError: a template does not name what is given.
    """
    return swap(Pairwise(judge, _filled(templates, preferences, examples), seed=seed))


def _filled(
    templates: Sequence[PromptTemplate], preferences: str, examples: str = ""
) -> list[PromptTemplate]:
    given = {"preferences": preferences, "examples": examples}
    wanted = {name: text for name, text in given.items() if text}
    return [each.given(wanted) for each in templates]


class _Panel:
    """The preferences of one entry as the members of a committee, two for each: one an order."""

    def __init__(
        self,
        judge: Judge,
        templates: Sequence[PromptTemplate],
        entry: Entry,
        config: PreferencesConfig,
        seed: int,
    ) -> None:
        self.preferences = entry.voting()
        orders: tuple[Literal["ab", "ba"], ...] = ("ab", "ba")
        members = [
            Member(
                strategy=Pairwise(
                    judge,
                    _filled(templates, preferences_text([each])),
                    seed=seed,
                    order=order,
                    keep_text=config.rationale,
                ),
                weight=each.share,
                name=f"{each.id}/{order}",
            )
            for each in self.preferences
            for order in orders
        ]
        vote = committee(members, "weighted", exclude_own_family=False)
        self.strategy: Strategy = early_stop(vote, wave=2) if config.early_stop else vote


class Preferences:
    """Judges with a profile; see `build_preferences`."""

    def __init__(
        self,
        judge: Judge,
        profile: Profile,
        templates: Sequence[PromptTemplate],
        config: PreferencesConfig,
        seed: int,
    ) -> None:
        if not 0 <= config.abstain_below <= 1:
            raise ConfigError(
                f"strategy: abstain_below = {config.abstain_below} must be from 0 to 1"
            )
        self._profile = profile
        self._config = config
        self._plain = preference_judge(judge, templates, seed=seed)
        self._panels = {
            entry.topic: _Panel(judge, templates, entry, config, seed)
            for entry in profile.entries
            if entry.use == "preferences"
        }

    @property
    def name(self) -> str:
        """`preferences@version`; whose they are is not said."""
        return f"preferences@{VERSION}"

    def spec(self) -> dict[str, Any]:
        """All that decides the result; of the profile only its hash."""
        config = self._config
        return {
            "kind": "preferences",
            "version": VERSION,
            "plain": dict(self._plain.spec()),
            "profile": self._profile.digest(),
            "topic": config.topic,
            "abstain_below": config.abstain_below,
            "early_stop": config.early_stop,
            "rationale": config.rationale,
        }

    async def judge(self, pair: Pair, ask: Ask) -> Outcome:
        """Let the person's preferences vote.

        Returns:
            A verdict whose `confidence` is the winner's share of the votes and whose
            `consistent` says whether both orders, each counted by itself, chose the same answer;
            a tie where the votes are level (`marks.level`). Undecided ("abstained") where the
            share is below `abstain_below`, ("no_quorum") where half of the votes are missing.

        Raises:
            ProviderError: no call was answered.
            RunStopped: the run ends.
        """
        entry = self._profile.entry_for(self._topic(pair))
        panel = None if entry is None else self._panels.get(entry.topic)
        if panel is None:
            return _plainly(await self._plain.judge(pair, ask))
        outcome = await panel.strategy.judge(pair, ask)
        return merged(outcome, panel.preferences, self._config.abstain_below)

    def _topic(self, pair: Pair) -> str | None:
        if self._config.topic == "category":
            return pair.category
        found = pair.meta.get(self._config.topic)
        return None if found is None else str(found)

    def __repr__(self) -> str:
        return f"Preferences({len(self._panels)} topics, {self._profile.digest()})"


def _plainly(outcome: Outcome) -> Outcome:
    """The plain judge's verdict, with its consistency said in the same field."""
    if not isinstance(outcome, Verdict):
        return outcome
    return msgspec.structs.replace(outcome, consistent=outcome.basis != "disagree")


def merged(outcome: Outcome, preferences: Sequence[Preference], abstain_below: float) -> Outcome:
    """The committee's outcome as one verdict of one person.

    Args:
        outcome: of the committee whose members are named PREFERENCE/ORDER.
        preferences: those that sat in it.
        abstain_below: the least share of the votes that decides, 0 to 1.
    """
    regrouped = (_regrouped(outcome.parts, each.id) for each in preferences)
    parts = tuple(part for part in regrouped if part is not None)
    if not isinstance(outcome, Verdict):
        return msgspec.structs.replace(outcome, parts=parts)
    by_order = {order: _counted(outcome.parts, order) for order in ("ab", "ba")}
    first, second = _leader(by_order["ab"]), _leader(by_order["ba"])
    share = outcome.confidence or 0.0
    rationale = _rationale(outcome)
    votes = tuple(msgspec.structs.replace(vote, text=None) for vote in outcome.votes)
    if share < abstain_below:
        detail = f"{share:.0%} of the votes agree, {abstain_below:.0%} are needed"
        return Undecided(
            id=outcome.id,
            why="abstained",
            detail=detail,
            votes=votes,
            parts=parts,
            marks=outcome.marks,
        )
    return msgspec.structs.replace(
        outcome,
        votes=votes,
        parts=parts,
        consistent=None if first is None or second is None else first == second,
        rationale=rationale,
    )


def _regrouped(parts: Sequence[Part], preference: str) -> Part | None:
    """One preference with its two orders below it; None where it was not asked."""
    own = tuple(part for part in parts if part.name.rpartition("/")[0] == preference)
    if not own:
        return None
    picks = {part.pick for part in own}
    agreed = len(own) == 2 and len(picks) == 1
    return Part(
        name=preference,
        pick=own[0].pick if agreed else "none",
        why=None if agreed and "none" not in picks else "disagreement",
        weight=own[0].weight,
        calls=sum(part.calls for part in own),
        cost_usd=sum(part.cost_usd for part in own),
        parts=own,
    )


def _counted(parts: Sequence[Part], order: str) -> Tally:
    own = (part for part in parts if part.name.rpartition("/")[2] == order)
    return tally((part.pick, exact(part.weight)) for part in own)


def _leader(votes: Tally) -> str | None:
    """The answer that one order by itself would choose; "tie" where level, None without votes."""
    if votes.heads == 0:
        return None
    return "A" if votes.a > votes.b else "B" if votes.b > votes.a else "tie"


def _rationale(outcome: Verdict) -> str | None:
    """The first sentences of the analyses behind the winner, each with the vote it belongs to.

    Only of votes that saw the pair's own A as A: the others speak of the answers by other names.
    """
    said: list[str] = []
    for part, vote in zip(outcome.parts, _votes_of(outcome), strict=True):
        if vote is None or vote.text is None or vote.order != "ab" or vote.pick != outcome.winner:
            continue
        if sentence := _first_sentence(vote.text):
            said.append(f"{part.name.rpartition('/')[0]}: {sentence}")
    return " ".join(said[:3]) or None


def _votes_of(outcome: Verdict) -> list[Vote | None]:
    """The vote of each part; a part that failed has none."""
    waiting = list(outcome.votes)
    out: list[Vote | None] = []
    for part in outcome.parts:
        out.append(waiting.pop(0) if part.calls and waiting else None)
    return out


_ANALYSIS_CHARS = 240


class _Reasons(msgspec.Struct):
    analysis: str = ""


def _first_sentence(text: str) -> str:
    try:
        found = msgspec.json.decode(text[text.index("{") : text.rindex("}") + 1], type=_Reasons)
    except (ValueError, msgspec.DecodeError, RecursionError):
        return ""
    flat = " ".join(found.analysis.split())
    end = flat.find(". ")
    return flat[: end + 1 if 0 <= end < _ANALYSIS_CHARS else _ANALYSIS_CHARS]


def build_preferences(
    config: PreferencesConfig,
    judge: Judge,
    *,
    seed: int,
    template_loader: TemplateLoader,
    profile_loader: ProfileLoader,
) -> Preferences:
    """Make the strategy of a `kind = "preferences"` node.

    Raises:
        ConfigError: the profile or the template cannot be used, or the profile was fitted with
            another model.
    """
    profile = profile_loader(config.profile)
    if judge.model != profile.judge.model and not config.any_judge:
        raise ConfigError(
            f"strategy: {config.profile} was fitted with the model {profile.judge.model!r}, and "
            f"the judge {judge.name!r} is {judge.model!r}; fit it again, or set any_judge = true"
        )
    if judge.by_pair:
        raise ConfigError(
            f"strategy: the judge {judge.name!r} replays recorded answers, which know of no "
            "preferences"
        )
    names = (config.template,) if config.template else TEMPLATES
    return Preferences(judge, profile, [template_loader(name) for name in names], config, seed)


def preference_calls(config: PreferencesConfig, profile: Profile) -> tuple[int, int]:
    """The fewest and the most calls for one pair."""
    asked = [each for each in profile.entries if each.use == "preferences"]
    sizes = [2 * len(each.voting()) for each in asked]
    least = [_settled_after(each.voting()) for each in asked] if config.early_stop else sizes
    plain = all(each.topic for each in profile.entries) or len(sizes) < len(profile.entries)
    without = [2] if plain else []
    return min(least + without), max(sizes + without)


def _settled_after(preferences: Sequence[Preference]) -> int:
    """Calls until a vote of one mind cannot be turned any more."""
    total = sum(exact(each.share) for each in preferences)
    seen = exact(0)
    for number, each in enumerate(preferences, start=1):
        seen += exact(each.share)
        if 2 * seen > total and 2 * number > len(preferences):
            return 2 * number
    return 2 * len(preferences)
