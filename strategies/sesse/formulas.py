"""What building a library costs, in calls, before anything is paid: the formulas of each stage.

Stands before the first call (`--dry-run`) and after the last one, where the calls that were made
must be those of the formulas. Pure arithmetic.

With D rows, E errors, M questions, k clusters, P candidate pairs and k_m merged groups:
holistic D, draft E, summarise k, equivalence 2P, summarise again k_m; an unreadable answer is
asked for once more, and those calls are counted apart.
"""

import math

from dikast.engine.model import Record
from dikast.strategies.sesse.library import BuildParams


def clusters_wanted(questions: int, k: int) -> int:
    """How many clusters for so many questions: at most `k`, four questions each on average."""
    return max(1, min(k, questions // 4))


def candidates_wanted(clusters: int, quantile: float) -> int:
    """How many pairs of so many labels are asked about: those at or above the quantile."""
    pairs = clusters * (clusters - 1) // 2
    return min(pairs, math.ceil(round((1.0 - quantile) * pairs, 9)))


class Sizes(Record, frozen=True):
    """The numbers that the formulas are of."""

    rows: int
    errors: int
    questions: int
    clusters: int
    candidates: int
    merged: int = 0

    def calls(self) -> dict[str, int]:
        """Calls by stage, retries of unreadable answers apart."""
        return {
            "holistic": self.rows,
            "draft": self.errors,
            "summarise": self.clusters,
            "equivalence": 2 * self.candidates,
            "resummarise": self.merged,
        }

    def embeddings(self) -> int:
        """Texts to embed: the questions and the labels, where they all differ."""
        return self.questions + (self.clusters if self.clusters > 1 else 0)


def expected_sizes(rows: int, accuracy: float, params: BuildParams) -> Sizes:
    """What to expect where every error gives `q` questions and nothing is merged.

    Args:
        rows: to be mined.
        accuracy: of the judge on them, 0 to 1.
        params: of the build.
    """
    errors = round(rows * (1.0 - accuracy))
    questions = errors * params.q
    clusters = clusters_wanted(questions, params.k) if questions else 0
    return Sizes(
        rows=rows,
        errors=errors,
        questions=questions,
        clusters=clusters,
        candidates=candidates_wanted(clusters, params.merge_quantile),
    )


def merged_max(sizes: Sizes) -> int:
    """The most groups that could be merged, hence summarised again."""
    return min(sizes.candidates, sizes.clusters // 2)
