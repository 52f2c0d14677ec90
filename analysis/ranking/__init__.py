"""Rankings from battles: ratings with intervals by prompt, what would sharpen them, comparisons.

Verdicts, labels or votes are read into `Battles`; `rank` turns them into `Standings`; everything
else takes one of the two. Needs the extra `analysis`.
"""

from dikast.analysis.ranking.battles import BattleLog, Battles, Result, battles_of, require_battles
from dikast.analysis.ranking.elo import elo
from dikast.analysis.ranking.live import LiveRanking, LiveRow
from dikast.analysis.ranking.matchmaking import Proposal, propose
from dikast.analysis.ranking.reading import BattleReader, PairFacts
from dikast.analysis.ranking.reference import (
    Comparison,
    Place,
    compare_rankings,
    places_of,
    read_places,
    separability,
)
from dikast.analysis.ranking.reliability import Weighted, dawid_skene, weigh_by_agreement
from dikast.analysis.ranking.report import (
    Effect,
    JudgeWeight,
    ModelRating,
    Ranking,
    RankSettings,
)
from dikast.analysis.ranking.standings import (
    Standings,
    expected_points,
    rank,
    rank_by_group,
    rank_by_judge,
)
from dikast.analysis.ranking.style import style_difference, style_names

__all__ = [
    "BattleLog",
    "BattleReader",
    "Battles",
    "Comparison",
    "Effect",
    "JudgeWeight",
    "LiveRanking",
    "LiveRow",
    "ModelRating",
    "PairFacts",
    "Place",
    "Proposal",
    "RankSettings",
    "Ranking",
    "Result",
    "Standings",
    "Weighted",
    "battles_of",
    "compare_rankings",
    "dawid_skene",
    "elo",
    "expected_points",
    "places_of",
    "propose",
    "rank",
    "rank_by_group",
    "rank_by_judge",
    "read_places",
    "require_battles",
    "separability",
    "style_difference",
    "style_names",
    "weigh_by_agreement",
]
