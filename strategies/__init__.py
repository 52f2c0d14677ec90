"""How a pair becomes an outcome: strategies, the templates they ask with, the readers they trust.

Between the scheduler (which hands in a pair) and the gateway (which answers calls). Nothing here
knows a provider, a sink, a file format of pairs, or the time.
"""

from dikast.strategies.factory import (
    AUTO,
    KINDS,
    PRESETS,
    PairwiseConfig,
    StrategyConfig,
    SwapConfig,
    build,
    parse_strategy,
    preset,
)
from dikast.strategies.pairwise import OrderRule, Pairwise, order_of
from dikast.strategies.prompts import (
    PromptTemplate,
    TemplateLoader,
    load_template,
    parse_template,
    shipped_templates,
)
from dikast.strategies.reader import (
    JsonReader,
    LetterReader,
    MarkerReader,
    Read,
    Reader,
    ReaderSpec,
    RegexReader,
    compile_reader,
)
from dikast.strategies.swap import Swap, swap

__all__ = [
    "AUTO",
    "KINDS",
    "PRESETS",
    "JsonReader",
    "LetterReader",
    "MarkerReader",
    "OrderRule",
    "Pairwise",
    "PairwiseConfig",
    "PromptTemplate",
    "Read",
    "Reader",
    "ReaderSpec",
    "RegexReader",
    "StrategyConfig",
    "Swap",
    "SwapConfig",
    "TemplateLoader",
    "build",
    "compile_reader",
    "load_template",
    "order_of",
    "parse_strategy",
    "parse_template",
    "preset",
    "shipped_templates",
    "swap",
]
