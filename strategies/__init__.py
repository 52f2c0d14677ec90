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
from dikast.strategies.preferences import PreferencesConfig
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
    RatingsReader,
    Read,
    Reader,
    ReaderSpec,
    RegexReader,
    compile_reader,
)
from dikast.strategies.repeat import Repeat, repeat
from dikast.strategies.rubric import (
    Band,
    Dimension,
    Rubric,
    Scale,
    load_rubric,
    parse_rubric,
    shipped_rubrics,
)
from dikast.strategies.score import Score, ScoreConfig
from dikast.strategies.score_prompt import ScorePrompt, score_record
from dikast.strategies.structured import (
    Answered,
    StructuredReader,
    format_instruction,
    json_schema,
)
from dikast.strategies.swap import Swap, swap

__all__ = [
    "AUTO",
    "DOUBTS",
    "KINDS",
    "MANY",
    "PRESETS",
    "RULES",
    "Answered",
    "Band",
    "Cascade",
    "CascadeConfig",
    "Committee",
    "CommitteeConfig",
    "Dimension",
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
    "PreferencesConfig",
    "PromptTemplate",
    "RatingsReader",
    "Read",
    "Reader",
    "ReaderSpec",
    "RegexReader",
    "Repeat",
    "RepeatConfig",
    "Rubric",
    "Rule",
    "Scale",
    "Score",
    "ScoreConfig",
    "ScorePrompt",
    "StrategyConfig",
    "StructuredReader",
    "Swap",
    "SwapConfig",
    "TemplateLoader",
    "build",
    "calls_range",
    "cascade",
    "committee",
    "compile_reader",
    "early_stop",
    "format_instruction",
    "json_schema",
    "judges_of",
    "load_rubric",
    "load_template",
    "order_of",
    "parse_rubric",
    "parse_strategy",
    "parse_template",
    "preset",
    "repeat",
    "score_record",
    "shipped_rubrics",
    "shipped_templates",
    "swap",
    "templates_of",
]
