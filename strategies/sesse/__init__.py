"""SESSE: a judge's own misjudgements become the conditional questions that it is asked with.

Lee, Delgeanu and Youssef, "SESSE: Sketch, Expand, Sort, Summarize, Evaluate" (arXiv 2608.18303).
Building (stages 0 to 4) stands beside the journey of a pair, evaluation (stage 5) is a strategy on
it. Modules that need numpy are imported by the commands that use them and never from here.
"""

from dikast.strategies.sesse.library import (
    SCHEMA_VERSION,
    BuildParams,
    Cluster,
    Library,
    Question,
    Split,
    load_library,
    qid_of,
    save_library,
)

__all__ = [
    "SCHEMA_VERSION",
    "BuildParams",
    "Cluster",
    "Library",
    "Question",
    "Split",
    "load_library",
    "qid_of",
    "save_library",
]
