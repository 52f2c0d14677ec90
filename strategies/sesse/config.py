"""How SESSE is asked to judge: the node of the strategy tree, checked, with what it may cost.

Off the journey: read once, before the first pair. Knows the library, no judge and no call.
"""

from collections.abc import Callable
from typing import Literal

from dikast.engine.errors import ConfigError
from dikast.strategies.node import Node
from dikast.strategies.sesse.library import Library
from dikast.strategies.sesse.tiers import BATCH_MAX, Batch, Orders, Tier1

Mode = Literal["faithful", "hybrid"]
Rung = Literal["deeper", "swapped", "holistic", "strong"]
LibraryLoader = Callable[[str], Library]

THRESHOLD = 0.5
"""The margin at which SESSE overrides the holistic verdict where nobody has calibrated it."""


class SesseConfig(Node, frozen=True, kw_only=True, tag="sesse"):
    """`kind = "sesse"`: conditional questions of a library, asked tier by tier.

    `judge` is a judge's name. `library` is the path of a library (`dikast sesse build`). `mode` is
    "faithful" (the pooled majority decides; default) or "hybrid" (it decides where its margin
    reaches `threshold`, else the holistic verdict stands). `depth` is how many questions of each
    cluster are asked; absent: the library's, else all. `threshold` absent: the library's, else
    0.5. `weights` counts votes by the library's weights. `order` is "sample" (each pair in its own
    order; default), "alternate" (every other question in the other order) or "both" (two calls a
    question; contradictions count as NA). `tier1` is "listwise" (one call; default), "per_cluster"
    or "off" (all clusters). `batch` is "question" (one call each; default), "cluster" or "sample".
    `early_stop` asks `wave` questions at a time until the rest cannot change the winner. `ladder`
    lists what is tried on a tie, in order: "deeper", "swapped", "holistic", "strong" (the judge
    `strong_judge`). `keep_text` keeps the judge's words in the votes.
    """

    judge: str
    library: str
    mode: Mode = "faithful"
    depth: int | None = None
    threshold: float | None = None
    weights: bool = False
    order: Orders = "sample"
    tier1: Tier1 = "listwise"
    batch: Batch = "question"
    early_stop: bool = False
    wave: int = 4
    ladder: tuple[Rung, ...] = ()
    strong_judge: str = ""
    keep_text: bool = False

    def asks(self) -> tuple[str, ...]:
        """Its judge, and the stronger one of the ladder."""
        return (self.judge, self.strong_judge) if self.strong_judge else (self.judge,)

    def needs(self) -> tuple[str, ...]:
        """The library."""
        return (f"the library {self.library} (dikast sesse build)",)


def depth_of(config: SesseConfig, library: Library) -> int:
    """How many questions of a cluster are asked: as configured, as tuned, or all."""
    return config.depth or library.depth or library.params.n_max


def threshold_of(config: SesseConfig, library: Library) -> float:
    """The margin from which SESSE overrides the holistic verdict."""
    if config.threshold is not None:
        return config.threshold
    return THRESHOLD if library.hybrid_threshold is None else library.hybrid_threshold


def check_config(config: SesseConfig, library: Library) -> None:
    """See that the settings fit each other and the library.

    Raises:
        ConfigError: they do not; says which and what to do.
    """
    if not library.question_count:
        raise ConfigError(f"strategy: the library {config.library} has no questions; build one")
    if config.depth is not None and not 1 <= config.depth <= library.params.n_max:
        raise ConfigError(
            f"strategy.depth = {config.depth}: must be at least 1 and at most "
            f"{library.params.n_max}, the depth that the library was built with"
        )
    if config.threshold is not None and not 0 <= config.threshold <= 1:
        raise ConfigError(f"strategy.threshold = {config.threshold}: must lie between 0 and 1")
    if config.wave < 1:
        raise ConfigError(f"strategy.wave = {config.wave}: must be at least 1")
    if config.mode == "hybrid" and config.ladder:
        raise ConfigError(
            'strategy: mode = "hybrid" already turns to the holistic verdict; remove ladder, or '
            'use mode = "faithful"'
        )
    if len(set(config.ladder)) != len(config.ladder):
        raise ConfigError("strategy.ladder: each rung can stand there once; remove the repetition")
    if "swapped" in config.ladder and config.order == "both":
        raise ConfigError(
            'strategy: order = "both" has asked everything in both orders; remove "swapped" from '
            "ladder"
        )
    if ("strong" in config.ladder) != bool(config.strong_judge):
        raise ConfigError(
            'strategy: the rung "strong" and strong_judge belong together; give both or neither'
        )
    if config.early_stop and config.batch == "sample":
        raise ConfigError(
            'strategy: early_stop has nothing to spare where batch = "sample" asks all at once; '
            "remove one of them"
        )


def calls_of(config: SesseConfig, library: Library) -> tuple[int, int]:
    """The fewest and the most calls for one pair, further tries after unreadable answers apart."""
    open_ = [each for each in library.clusters if each.questions and each.muted is not True]
    depth = depth_of(config, library)
    routing = {"listwise": 1, "per_cluster": len(open_), "off": 0}[config.tier1]
    per_question = 2 if config.order == "both" else 1
    sizes = [min(depth, len(each.questions)) for each in open_]
    if config.batch == "question":
        votes = sum(sizes) * per_question
    elif config.batch == "cluster":
        votes = len(open_) * (1 if config.order == "sample" else 2)
    else:
        votes = -(-sum(sizes) // BATCH_MAX) * (1 if config.order == "sample" else 2)
    most = routing + votes
    if config.mode == "hybrid":
        return routing + 1, most + 1
    for rung in config.ladder:
        if rung == "deeper":
            more = [len(each.questions) - size for each, size in zip(open_, sizes, strict=True)]
            most += sum(more) * per_question if config.batch == "question" else len(open_) * 2
        else:
            most += votes if rung == "swapped" else 1
    fewest = routing if config.tier1 != "off" else (0 if config.early_stop else votes)
    return fewest, most
