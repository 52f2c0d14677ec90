"""How a pair becomes an outcome: strategies, the templates they ask with, the readers they trust.

Between the scheduler (which hands in a pair) and the gateway (which answers calls). Nothing here
knows a provider, a sink, a file format of pairs, or the time.
"""

from dikast.strategies.aggregate import RULES, Rule
from dikast.strategies.calibrated import Calibrated, calibrated
from dikast.strategies.calibration_file import Calibration, load_calibration
from dikast.strategies.cascade import DOUBTS, Cascade, Doubt, cascade
from dikast.strategies.committee import Committee, Member, committee
from dikast.strategies.counting import (
    ASSUMED,
    Calls,
    Rates,
    calls_of,
    calls_range,
    rows_of,
)
from dikast.strategies.counting import Row as CallsRow
from dikast.strategies.early_stop import EarlyStop, early_stop
from dikast.strategies.factory import build
from dikast.strategies.length_guard import LengthGuarded, length_guard
from dikast.strategies.loaders import Loaders
from dikast.strategies.measured import (
    MeasuredMember,
    MeasuredWeights,
    WeightsLoader,
    load_weights,
    measured_weights,
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
from dikast.strategies.sesse.config import SesseConfig
from dikast.strategies.sesse.library import Library, load_library
from dikast.strategies.sesse.strategy import Sesse
from dikast.strategies.structured import (
    Answered,
    StructuredReader,
    format_instruction,
    json_schema,
)
from dikast.strategies.swap import Swap, swap
from dikast.strategies.tree import (
    AUTO,
    KINDS,
    MANY,
    PRESETS,
    CalibratedConfig,
    CascadeConfig,
    CommitteeConfig,
    EarlyStopConfig,
    LengthGuardConfig,
    MemberConfig,
    PairwiseConfig,
    RepeatConfig,
    StrategyConfig,
    SwapConfig,
    judges_of,
    nodes_of,
    parse_strategy,
    preset,
    templates_of,
)
from dikast.strategies.weighing import with_weights

__all__ = [
    "ASSUMED",
    "AUTO",
    "DOUBTS",
    "KINDS",
    "MANY",
    "PRESETS",
    "RULES",
    "Answered",
    "Band",
    "Calibrated",
    "CalibratedConfig",
    "Calibration",
    "Calls",
    "CallsRow",
    "Cascade",
    "CascadeConfig",
    "Committee",
    "CommitteeConfig",
    "Dimension",
    "Doubt",
    "EarlyStop",
    "EarlyStopConfig",
    "JsonReader",
    "LengthGuardConfig",
    "LengthGuarded",
    "LetterReader",
    "Library",
    "Loaders",
    "MarkerReader",
    "MeasuredMember",
    "MeasuredWeights",
    "Member",
    "MemberConfig",
    "OrderRule",
    "Pairwise",
    "PairwiseConfig",
    "PreferencesConfig",
    "PromptTemplate",
    "Rates",
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
    "Sesse",
    "SesseConfig",
    "StrategyConfig",
    "StructuredReader",
    "Swap",
    "SwapConfig",
    "TemplateLoader",
    "WeightsLoader",
    "build",
    "calibrated",
    "calls_of",
    "calls_range",
    "cascade",
    "committee",
    "compile_reader",
    "early_stop",
    "format_instruction",
    "json_schema",
    "judges_of",
    "length_guard",
    "load_calibration",
    "load_library",
    "load_rubric",
    "load_template",
    "load_weights",
    "measured_weights",
    "nodes_of",
    "order_of",
    "parse_rubric",
    "parse_strategy",
    "parse_template",
    "preset",
    "repeat",
    "rows_of",
    "score_record",
    "shipped_rubrics",
    "shipped_templates",
    "swap",
    "templates_of",
    "with_weights",
]
