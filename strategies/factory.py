"""From a configuration to a strategy: the tree as it stands in TOML, and the tree that judges.

Off the journey: runs once, before the first pair. Every kind is named here and nowhere else;
nothing registers itself. Knows judges by name and templates through a loader, no provider.
"""

from collections.abc import Mapping
from typing import Any, Union, cast

import msgspec

from dikast.engine.errors import ConfigError
from dikast.engine.model import Judge
from dikast.engine.ports import Strategy
from dikast.strategies.names import explain, nearest
from dikast.strategies.pairwise import DecideBy, OrderRule, Pairwise
from dikast.strategies.prompts import PromptTemplate, TemplateLoader, load_template
from dikast.strategies.rubric import RubricLoader, load_rubric
from dikast.strategies.score import ScoreConfig, build_score
from dikast.strategies.swap import swap

AUTO = "auto"
"""The template name that stands for: by the language of each question."""

_AUTO_TEMPLATES = ("pairwise-en", "pairwise-zh")


class PairwiseConfig(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="pairwise",
):
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


class SwapConfig(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="swap",
):
    """`kind = "swap"`: the strategy `inner` in both orders; an agreeing conclusion or a tie."""

    inner: "StrategyConfig"


# msgspec resolves the forward reference by name, which needs typing.Union at run time.
StrategyConfig = Union[PairwiseConfig, SwapConfig, ScoreConfig]  # noqa: UP007

KINDS = ("pairwise", "swap", "score")
PRESETS = ("single", "swap", "score")


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
        known = (*PairwiseConfig.__struct_fields__, *SwapConfig.__struct_fields__)
        known = (*known, *ScoreConfig.__struct_fields__, "kind")
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


def preset(name: str, judge: str, template: str = AUTO) -> StrategyConfig:
    """The tree that a short name stands for.

    Args:
        name: "single" (one judge, one order), "swap" (one judge, both orders) or "score" (one
            judge, each answer by itself on the general rubric).
        judge: the judge's name.
        template: as in `PairwiseConfig`.

    Raises:
        ConfigError: there is no such preset, or it takes no template.
    """
    if name == "score":
        if template != AUTO:
            raise ConfigError(
                "the strategy score asks with a rubric, not with a template; for a rubric of your "
                'own write [strategy] with kind = "score" and rubric = "FILE.toml"'
            )
        return ScoreConfig(judge=judge)
    if name == "single":
        return PairwiseConfig(judge=judge, template=template)
    if name == "swap":
        return SwapConfig(inner=PairwiseConfig(judge=judge, template=template))
    raise ConfigError(f"unknown strategy {name!r}; {nearest(name, PRESETS)}")


def build(
    config: StrategyConfig,
    judges: Mapping[str, Judge],
    *,
    seed: int,
    template_loader: TemplateLoader = load_template,
    rubric_loader: RubricLoader = load_rubric,
) -> Strategy:
    """Make the strategy that a tree describes.

    Args:
        config: the tree.
        judges: every judge that may be named.
        seed: the run's seed; decides orders and fences.
        template_loader: finds a template by its name.
        rubric_loader: finds a rubric by its name.

    Raises:
        ConfigError: an unknown judge or template, or a tree that cannot work.
    """
    if isinstance(config, PairwiseConfig | ScoreConfig) and config.judge not in judges:
        raise ConfigError(f"unknown judge {config.judge!r}; {nearest(config.judge, judges)}")
    if isinstance(config, ScoreConfig):
        return build_score(config, judges[config.judge], seed=seed, rubric_loader=rubric_loader)
    if isinstance(config, PairwiseConfig):
        return Pairwise(
            judges[config.judge],
            _templates(config.template, template_loader),
            seed=seed,
            order=config.order,
            sample=config.sample,
            keep_text=config.keep_text,
            decide=config.decide,
        )
    if isinstance(config.inner, ScoreConfig):
        raise ConfigError("strategy: score judges each answer by itself; a swap changes nothing")
    if isinstance(config.inner, SwapConfig):
        raise ConfigError("strategy: a swap inside a swap judges nothing new; remove one of them")
    return swap(build(config.inner, judges, seed=seed, template_loader=template_loader))


def _templates(name: str, loader: TemplateLoader) -> tuple[PromptTemplate, ...]:
    return tuple(map(loader, _AUTO_TEMPLATES if name == AUTO else (name,)))
