"""A strategy tree with its measured weights written out, to be shown and counted before a run.

Off the journey: used by `dikast check` and by the wiring. Knows the nodes, no strategy.
"""

import operator

import msgspec

from dikast.strategies.measured import WeightsLoader, load_weights
from dikast.strategies.tree import (
    CalibratedConfig,
    CascadeConfig,
    CommitteeConfig,
    EarlyStopConfig,
    LengthGuardConfig,
    RepeatConfig,
    StrategyConfig,
    SwapConfig,
    seats,
)

_WITH_INNER = (SwapConfig, RepeatConfig, EarlyStopConfig, CalibratedConfig, LengthGuardConfig)


def with_weights(
    config: StrategyConfig, weights_loader: WeightsLoader = load_weights
) -> StrategyConfig:
    """The tree with every measured weight written out, and without the members that weigh nothing.

    So a tree can be shown, and its calls counted, as it will judge; `build` does the same.

    Raises:
        ConfigError: a file cannot be read, or does not fit its committee.
    """
    if isinstance(config, _WITH_INNER):
        inner = with_weights(config.inner, weights_loader)
        return config if inner is config.inner else msgspec.structs.replace(config, inner=inner)
    if isinstance(config, CascadeConfig):
        rungs = tuple(with_weights(rung, weights_loader) for rung in config.rungs)
        same = all(map(operator.is_, rungs, config.rungs))
        return config if same else msgspec.structs.replace(config, rungs=rungs)
    if not isinstance(config, CommitteeConfig):
        return config
    below = [with_weights(each.strategy, weights_loader) for each in config.seated()]
    if any(new is not old.strategy for new, old in zip(below, config.seated(), strict=True)):
        members = tuple(
            msgspec.structs.replace(old, strategy=new)
            for new, old in zip(below, config.seated(), strict=True)
        )
        config = msgspec.structs.replace(config, judges=(), members=members)
    if config.weights is None:
        return config
    members, _ = seats(config, weights_loader)
    return msgspec.structs.replace(config, judges=(), members=members)
