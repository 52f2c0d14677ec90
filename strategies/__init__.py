"""How a pair becomes an outcome: strategies, the templates they ask with, the readers they trust.

Between the scheduler (which hands in a pair) and the gateway (which answers calls). Nothing here
knows a provider, a sink, a file format of pairs, or the time.
"""

from dikast.strategies.aggregate import RULES, Rule
from dikast.strategies.cascade import DOUBTS, Cascade, Doubt, cascade
from dikast.strategies.committee import Committee, Member, committee
from dikast.strategies.counting import calls_range
from dikast.strategies.early_stop import EarlyStop, early_stop
from dikast.strategies.factory import (
    AUTO,
    KINDS,
    MANY,
    PRESETS,
    CascadeConfig,
    CommitteeConfig,
    EarlyStopConfig,
    MemberConfig,
    PairwiseConfig,
    RepeatConfig,
    StrategyConfig,
    SwapConfig,
    build,
    judges_of,
    parse_strategy,
    preset,
    templates_of,
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
from dikast.strategies.repeat import Repeat, repeat
from dikast.strategies.swap import Swap, swap

__all__ = [
    "AUTO",
    "DOUBTS",
    "KINDS",
    "MANY",
    "PRESETS",
    "RULES",
    "Cascade",
    "CascadeConfig",
    "Committee",
    "CommitteeConfig",
    "Doubt",
    "EarlyStop",
    "EarlyStopConfig",
    "JsonReader",
    "LetterReader",
    "MarkerReader",
    "Member",
    "MemberConfig",
    "OrderRule",
    "Pairwise",
    "PairwiseConfig",
    "PromptTemplate",
    "Read",
    "Reader",
    "ReaderSpec",
    "RegexReader",
    "Repeat",
    "RepeatConfig",
    "Rule",
    "StrategyConfig",
    "Swap",
    "SwapConfig",
    "TemplateLoader",
    "build",
    "calls_range",
    "cascade",
    "committee",
    "compile_reader",
    "early_stop",
    "judges_of",
    "load_template",
    "order_of",
    "parse_strategy",
    "parse_template",
    "preset",
    "repeat",
    "shipped_templates",
    "swap",
    "templates_of",
]
