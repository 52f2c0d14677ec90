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
    RatingsReader,
    Read,
    Reader,
    ReaderSpec,
    RegexReader,
    compile_reader,
)
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
    "KINDS",
    "PRESETS",
    "Answered",
    "Band",
    "Dimension",
    "JsonReader",
    "LetterReader",
    "MarkerReader",
    "OrderRule",
    "Pairwise",
    "PairwiseConfig",
    "PromptTemplate",
    "RatingsReader",
    "Read",
    "Reader",
    "ReaderSpec",
    "RegexReader",
    "Rubric",
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
    "compile_reader",
    "format_instruction",
    "json_schema",
    "load_rubric",
    "load_template",
    "order_of",
    "parse_rubric",
    "parse_strategy",
    "parse_template",
    "preset",
    "score_record",
    "shipped_rubrics",
    "shipped_templates",
    "swap",
]
