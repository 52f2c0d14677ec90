"""A strategy tree as it stands in TOML: its nodes, how it is read, what it is made of.

Off the journey: read once, before the first pair. Every kind is named here and nowhere else;
nothing registers itself. Judges and files are names here; `factory` makes the strategies.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union, cast, get_args

import msgspec

from dikast.engine.errors import ConfigError
from dikast.strategies.aggregate import Rule
from dikast.strategies.cascade import ESCALATE_WHEN, Doubt
from dikast.strategies.committee import distinct
from dikast.strategies.measured import WeightsLoader, weighed
from dikast.strategies.names import explain, nearest
from dikast.strategies.node import Node
from dikast.strategies.pairwise import DecideBy, OrderRule
from dikast.strategies.preferences.strategy import PreferencesConfig
from dikast.strategies.score import ScoreConfig
from dikast.strategies.sesse.config import SesseConfig

AUTO = "auto"
"""The template name that stands for: by the language of each question."""


class PairwiseConfig(Node, frozen=True, kw_only=True, tag="pairwise"):
    """`kind = "pairwise"`: one judge, one order.

    `judge` is a judge's name. `template` is a shipped name, a path ending in .toml, or "auto"
    (Chinese for Chinese questions, else English; default). `order` is "hash" (default), "ab" or
    "ba". `sample` is the number of the draw. `keep_text` keeps the judge's words in the outcome.
    `decide` is "text" (the verdict as written, default) or "logprobs" (the likeliest verdict).
    """

    judge: str
    template: str = AUTO
    order: OrderRule = "hash"
    sample: int = 0
    keep_text: bool = False
    decide: DecideBy = "text"

    def asks(self) -> tuple[str, ...]:
        """Its judge."""
        return (self.judge,)

    def prompts(self) -> tuple[str, ...]:
        """Its template."""
        return (self.template,)

    def calls(self) -> tuple[int, int]:
        """One."""
        return (1, 1)

    def needs(self) -> tuple[str, ...]:
        """Log probabilities, where they decide."""
        return ("log probabilities: top_logprobs of the judge",) * (self.decide == "logprobs")


class SwapConfig(Node, frozen=True, kw_only=True, tag="swap"):
    """`kind = "swap"`: the strategy `inner` in both orders; an agreeing conclusion or a tie."""

    inner: "StrategyConfig"

    def children(self) -> tuple[Node, ...]:
        """The strategy inside."""
        return (self.inner,)


class MemberConfig(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One `[[strategy.members]]` of a committee.

    `strategy` is how it judges. `weight` counts under `rule = "weighted"`. `family` is absent
    for: the family of its judge. `name` is shown in outcomes; absent: the name of its judge.
    """

    strategy: "StrategyConfig"
    weight: float = 1.0
    family: str | None = None
    name: str = ""


class CommitteeConfig(Node, frozen=True, kw_only=True, tag="committee"):
    """`kind = "committee"`: several members vote on every pair.

    `judges` lists judges that each judge in both orders with `template` (as for "pairwise");
    `members` lists strategies of any kind. `rule` is "majority" (default), "plurality",
    "median", "mean", "trimmed_mean" or "weighted". `quorum` is how many must give a verdict;
    absent: more than half. `trim` is the share that "trimmed_mean" cuts off at each end. `band`
    is how far from 0 a mean or median must be to be no tie. With `exclude_own_family` no judge
    votes on an answer of a model of its own family, where the families are known. `weights` is
    the path of a file that `dikast weights` wrote: measured weights for rule = "weighted".
    """

    judges: tuple[str, ...] = ()
    template: str = AUTO
    members: tuple[MemberConfig, ...] = ()
    rule: Rule = "majority"
    quorum: int | None = None
    trim: float = 0.2
    band: float = 0.0
    exclude_own_family: bool = True
    weights: str | None = None

    def seated(self) -> tuple[MemberConfig, ...]:
        """Every member: the listed judges in both orders, then `members`."""
        return (
            *(MemberConfig(strategy=preset("swap", judge, self.template)) for judge in self.judges),
            *self.members,
        )

    def children(self) -> tuple[Node, ...]:
        """The strategies of all members."""
        return tuple(member.strategy for member in self.seated())


class RepeatConfig(Node, frozen=True, kw_only=True, tag="repeat"):
    """`kind = "repeat"`: the strategy `inner`, `n` times, as samples of one judgement.

    `rule`, `quorum`, `trim` and `band` are those of "committee", without "weighted".
    """

    inner: "StrategyConfig"
    n: int
    rule: Rule = "majority"
    quorum: int | None = None
    trim: float = 0.2
    band: float = 0.0

    def children(self) -> tuple[Node, ...]:
        """The strategy inside."""
        return (self.inner,)


class CascadeConfig(Node, frozen=True, kw_only=True, tag="cascade"):
    """`kind = "cascade"`: the first of `rungs` judges; a pair in doubt goes on to the next.

    `escalate_when` names the doubts: "tie", "disagreement", "unparsed" (these by default),
    "low_margin" (the margin is below `margin_below`) and "failed".
    """

    rungs: tuple["StrategyConfig", ...]
    escalate_when: tuple[Doubt, ...] = ESCALATE_WHEN
    margin_below: float = 0.5

    def children(self) -> tuple[Node, ...]:
        """The rungs, the first one first."""
        return self.rungs


class EarlyStopConfig(Node, frozen=True, kw_only=True, tag="early_stop"):
    """`kind = "early_stop"`: the committee or repeat `inner`, until its winner is settled.

    `wave` is how many members are asked at the same time. `risk` absent: exact. Else it is the
    greatest probability, above 0 and at most 0.5, that the full vote would have had another
    result; members must have equal weights, and a committee's are asked in an order drawn from
    the pair's id.
    """

    inner: "StrategyConfig"
    wave: int = 1
    risk: float | None = None

    def children(self) -> tuple[Node, ...]:
        """The strategy inside."""
        return (self.inner,)


class CalibratedConfig(Node, frozen=True, kw_only=True, tag="calibrated"):
    """`kind = "calibrated"`: the strategy `inner`, its confidence made a chance of agreement.

    `calibration` is the path of a file of `dikast calibrate`, fitted on outcomes of `inner`. With
    `abstain_below` (0 to 1) a pair whose calibrated confidence is lower is undecided, "abstained".
    `allow_other_spec` takes a calibration of another strategy, too.
    """

    inner: "StrategyConfig"
    calibration: str
    abstain_below: float | None = None
    allow_other_spec: bool = False

    def children(self) -> tuple[Node, ...]:
        """The strategy inside."""
        return (self.inner,)

    def needs(self) -> tuple[str, ...]:
        """Its file."""
        return (f"the calibration {self.calibration}",)


class LengthGuardConfig(Node, frozen=True, kw_only=True, tag="length_guard"):
    """`kind = "length_guard"`: the strategy `inner`, told that length is no criterion, or not.

    `clause`: the prompt says that length is no criterion (true, default) or does not (false; works
    on prompts of dikast). `strip` takes greetings, self-references and closing offers out of the
    answers before they are shown, and records what it took.
    """

    inner: "StrategyConfig"
    clause: bool = True
    strip: bool = False

    def children(self) -> tuple[Node, ...]:
        """The strategy inside."""
        return (self.inner,)


# msgspec resolves the forward reference by name, which needs typing.Union at run time.
StrategyConfig = Union[  # noqa: UP007
    PairwiseConfig,
    SwapConfig,
    ScoreConfig,
    CommitteeConfig,
    RepeatConfig,
    CascadeConfig,
    EarlyStopConfig,
    CalibratedConfig,
    LengthGuardConfig,
    SesseConfig,
    PreferencesConfig,
]

KINDS = tuple(str(each.__struct_config__.tag) for each in get_args(StrategyConfig))
PRESETS = ("single", "swap", "score", "committee", "cascade")
"""What `--strategy` may name."""
MANY = ("committee", "cascade")
"""Presets that ask several judges."""


def parse_strategy(data: Mapping[str, Any]) -> StrategyConfig:
    """Read a strategy tree from plain data (TOML, JSON).

    Args:
        data: for example `{"kind": "swap", "inner": {"kind": "pairwise", "judge": "gpt"}}`.

    Raises:
        ConfigError: an unknown kind or field (with the nearest that exists), or a wrong type.
    """
    _check_kinds(data, "strategy")
    try:
        config: StrategyConfig = msgspec.convert(data, StrategyConfig)
    except msgspec.ValidationError as error:
        kinds = (*get_args(StrategyConfig), MemberConfig)
        known = {"kind", *(name for each in kinds for name in each.__struct_fields__)}
        place, message = explain(error, known)
        where = f"strategy.{place}" if place else "strategy"
        raise ConfigError(f"{where}: {message}") from error
    return config


def _check_kinds(data: object, place: str) -> None:
    if not isinstance(data, Mapping):
        raise ConfigError(
            f'{place}: must be a table such as {{ kind = "pairwise", judge = "..." }}'
        )
    table = cast(Mapping[str, object], data)
    kind = table.get("kind")
    if kind is None:
        raise ConfigError(f"{place}: kind is missing; known are {', '.join(map(repr, KINDS))}")
    if kind not in KINDS:
        raise ConfigError(f"{place}.kind = {kind!r}: {nearest(str(kind), KINDS)}")
    if "inner" in table:
        _check_kinds(table["inner"], f"{place}.inner")
    for at, rung in _listed(table, "rungs"):
        _check_kinds(rung, f"{place}.rungs[{at}]")
    for at, member in _listed(table, "members"):
        if isinstance(member, Mapping) and "strategy" in member:
            strategy = cast(Mapping[str, object], member)["strategy"]
            _check_kinds(strategy, f"{place}.members[{at}].strategy")


def _listed(table: Mapping[str, object], name: str) -> list[tuple[int, object]]:
    """The numbered elements of a list in a table; what is no list is left to the conversion."""
    found = table.get(name)
    return list(enumerate(cast(list[object], found))) if isinstance(found, list | tuple) else []


def preset(name: str, judge: str | Sequence[str], template: str = AUTO) -> StrategyConfig:
    """The tree that a short name stands for.

    Args:
        name: "single" (one judge, one order), "swap" (one judge, both orders), "score" (one
            judge, each answer by itself on the general rubric), "committee" (all
            judges, each in both orders, majority) or "cascade" (the judges in the order given,
            each in both orders; the next is asked where the last was in doubt).
        judge: the judge's name; for "committee" and "cascade" a list of at least two.
        template: as in `PairwiseConfig`.

    Raises:
        ConfigError: there is no such preset, or not as many judges as it needs.
    """
    names = (judge,) if isinstance(judge, str) else tuple(judge)
    if name not in PRESETS:
        raise ConfigError(f"unknown strategy {name!r}; {nearest(name, PRESETS)}")
    if name in MANY and len(names) < 2:
        raise ConfigError(f"the strategy {name} needs at least two judges, not {len(names)}")
    if name not in MANY and len(names) != 1:
        raise ConfigError(f"the strategy {name} asks one judge, but {len(names)} are there")
    if name == "score":
        if template != AUTO:
            raise ConfigError(
                "the strategy score asks with a rubric, not with a template; for a rubric of your "
                'own write [strategy] with kind = "score" and rubric = "FILE.toml"'
            )
        return ScoreConfig(judge=names[0])
    if name == "committee":
        return CommitteeConfig(judges=names, template=template)
    if name == "cascade":
        return CascadeConfig(rungs=tuple(preset("swap", each, template) for each in names))
    single = PairwiseConfig(judge=names[0], template=template)
    return single if name == "single" else SwapConfig(inner=single)


def nodes_of(config: Node) -> Iterator[Node]:
    """Every node of a tree, each before those below it."""
    yield config
    for child in config.children():
        yield from nodes_of(child)


def seats(
    config: CommitteeConfig, loader: WeightsLoader
) -> tuple[tuple[MemberConfig, ...], str | None]:
    """Who sits in a committee, with measured weights written out; and the hash of these."""
    seated = config.seated()
    if config.weights is None:
        return seated, None
    names = distinct([each.name or "+".join(judges_of(each.strategy)) for each in seated])
    return weighed(seated, names, config.rule, loader(config.weights), config.weights)


def judges_of(config: Node) -> list[str]:
    """Names of the judges in a strategy tree, each once, in the order of the tree."""
    return list(dict.fromkeys(name for node in nodes_of(config) for name in node.asks()))


def templates_of(config: Node) -> list[str]:
    """Names of the templates in a strategy tree, each once."""
    return list(dict.fromkeys(name for node in nodes_of(config) for name in node.prompts()))
