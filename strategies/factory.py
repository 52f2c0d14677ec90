"""From a strategy tree to the strategy that judges.

Off the journey: runs once, before the first pair. Knows judges by name and files through loaders,
no provider.
"""

from collections.abc import Mapping

from dikast.engine.errors import ConfigError
from dikast.engine.model import Judge
from dikast.engine.ports import Strategy
from dikast.strategies.calibrated import calibrated
from dikast.strategies.cascade import cascade
from dikast.strategies.committee import Committee, Member, committee
from dikast.strategies.early_stop import early_stop
from dikast.strategies.length_guard import length_guard
from dikast.strategies.loaders import Loaders
from dikast.strategies.names import nearest
from dikast.strategies.pairwise import Pairwise
from dikast.strategies.preferences.strategy import PreferencesConfig, build_preferences
from dikast.strategies.prompts import PromptTemplate, TemplateLoader
from dikast.strategies.repeat import Repeat, repeat
from dikast.strategies.score import ScoreConfig, build_score
from dikast.strategies.sesse.config import SesseConfig
from dikast.strategies.sesse.strategy import build_sesse
from dikast.strategies.swap import swap
from dikast.strategies.tree import (
    AUTO,
    CalibratedConfig,
    CascadeConfig,
    CommitteeConfig,
    EarlyStopConfig,
    LengthGuardConfig,
    PairwiseConfig,
    RepeatConfig,
    StrategyConfig,
    SwapConfig,
    judges_of,
    seats,
)

_AUTO_TEMPLATES = ("pairwise-en", "pairwise-zh")


def build(
    config: StrategyConfig,
    judges: Mapping[str, Judge],
    *,
    seed: int,
    loaders: Loaders | None = None,
) -> Strategy:
    """Make the strategy that a tree describes.

    Args:
        config: the tree.
        judges: every judge that may be named.
        seed: the run's seed; decides orders and fences.
        loaders: find the files that the tree names; the shipped ones and paths by default.

    Raises:
        ConfigError: an unknown judge or template, or a tree that cannot work.
    """
    maker = _Maker(judges, seed, loaders or Loaders())
    return maker.make(config)


class _Maker:
    """Turns nodes into strategies, one method a kind."""

    def __init__(self, judges: Mapping[str, Judge], seed: int, load: Loaders) -> None:
        self._judges = judges
        self._seed = seed
        self._load = load

    def make(self, config: StrategyConfig) -> Strategy:
        if isinstance(config, PairwiseConfig):
            return self._pairwise(config)
        if isinstance(config, ScoreConfig):
            return build_score(
                config,
                self._judge(config.judge),
                seed=self._seed,
                rubric_loader=self._load.rubric,
            )
        if isinstance(config, SesseConfig):
            return build_sesse(
                config,
                self._judge(config.judge),
                seed=self._seed,
                library_loader=self._load.library,
                strong=self._judge(config.strong_judge) if config.strong_judge else None,
            )
        if isinstance(config, PreferencesConfig):
            return build_preferences(
                config,
                self._judge(config.judge),
                seed=self._seed,
                template_loader=self._load.template,
                profile_loader=self._load.profile,
            )
        if isinstance(config, SwapConfig):
            return self._swap(config)
        if isinstance(config, CommitteeConfig):
            return self._committee(config)
        if isinstance(config, RepeatConfig):
            return self._repeat(config)
        if isinstance(config, CascadeConfig):
            return cascade(
                [self.make(rung) for rung in config.rungs],
                config.escalate_when,
                config.margin_below,
            )
        if isinstance(config, CalibratedConfig):
            return calibrated(
                self.make(config.inner),
                self._load.calibration(config.calibration),
                config.abstain_below,
                allow_other_spec=config.allow_other_spec,
            )
        if isinstance(config, LengthGuardConfig):
            return length_guard(self.make(config.inner), clause=config.clause, strip=config.strip)
        return self._early_stop(config)

    def _judge(self, name: str) -> Judge:
        if name not in self._judges:
            raise ConfigError(f"unknown judge {name!r}; {nearest(name, self._judges)}")
        return self._judges[name]

    def _pairwise(self, config: PairwiseConfig) -> Pairwise:
        return Pairwise(
            self._judge(config.judge),
            _templates(config.template, self._load.template),
            seed=self._seed,
            order=config.order,
            sample=config.sample,
            keep_text=config.keep_text,
            decide=config.decide,
        )

    def _swap(self, config: SwapConfig) -> Strategy:
        if isinstance(config.inner, ScoreConfig):
            raise ConfigError(
                "strategy: score judges each answer by itself; a swap changes nothing"
            )
        if isinstance(config.inner, SwapConfig | PreferencesConfig):
            raise ConfigError(
                f"strategy: a {config.inner.__struct_config__.tag} inside a swap judges nothing "
                "new; remove one of them"
            )
        return swap(self.make(config.inner))

    def _committee(self, config: CommitteeConfig) -> Committee:
        seated, measured = seats(config, self._load.weights)
        members = [
            Member(
                strategy=self.make(each.strategy),
                weight=each.weight,
                family=each.family or self._family(each.strategy),
                name=each.name,
            )
            for each in seated
        ]
        return committee(
            members,
            config.rule,
            config.quorum,
            config.exclude_own_family,
            trim=config.trim,
            band=config.band,
            measured=measured,
        )

    def _repeat(self, config: RepeatConfig) -> Repeat:
        return repeat(
            self.make(config.inner),
            config.n,
            config.rule,
            config.quorum,
            trim=config.trim,
            band=config.band,
        )

    def _early_stop(self, config: EarlyStopConfig) -> Strategy:
        if isinstance(config.inner, CommitteeConfig):
            return early_stop(self._committee(config.inner), config.wave, config.risk)
        if isinstance(config.inner, RepeatConfig):
            return early_stop(self._repeat(config.inner), config.wave, config.risk)
        raise ConfigError(
            "strategy: early_stop needs a vote to stop; its inner must be a committee or a repeat"
        )

    def _family(self, config: StrategyConfig) -> str | None:
        """The family of a member's judges, where they are all of one."""
        families = {self._judges[name].family for name in judges_of(config) if name in self._judges}
        return families.pop() if len(families) == 1 else None


def _templates(name: str, loader: TemplateLoader) -> tuple[PromptTemplate, ...]:
    return tuple(map(loader, _AUTO_TEMPLATES if name == AUTO else (name,)))
