"""The library of a judge's criteria: what `sesse build` mines and `sesse` asks with, as one file.

Off the journey: read once, before the first pair. One JSON file, addressed by the hash of its
content, that says which judge it was mined from, with which parameters, prompts, embedder and
rows. Knows no judge, no call and no numpy.
"""

import hashlib
import os
import unicodedata
from pathlib import Path
from typing import Any

import msgspec

from dikast.engine.errors import InputError
from dikast.engine.files import write_whole
from dikast.engine.model import Record
from dikast.strategies.record_files import RecordFile

SCHEMA_VERSION = 1


class Question(Record, frozen=True, forbid_unknown_fields=True):
    """One conditional sub-question: "if `condition`, which answer is better at `conclusion`?".

    `source_id` names the pair whose misjudgement it was drafted from, `source_subset` that pair's
    category. `weight` counts its vote; `stats` holds what was measured on calibration rows.
    """

    qid: str
    condition: str
    conclusion: str
    source_id: str = ""
    source_subset: str = ""
    weight: float = 1.0
    stats: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The whole question as one clause, as it is embedded."""
        return f"If {self.condition}, {self.conclusion}"


class Cluster(Record, frozen=True, forbid_unknown_fields=True):
    """A theme: its generalised condition and its questions, the most diverse first.

    `insertion_radius` holds, for each question, its cosine distance to the nearest of those
    before it when it was chosen (0 for the first): it never grows. `merged_from` lists the
    clusters that this one was merged from. `muted` is True for a theme that is never asked, or
    lists the categories in which it is not.
    """

    cid: str
    label: str
    questions: tuple[Question, ...]
    insertion_radius: tuple[float, ...] = ()
    centroid: tuple[float, ...] = ()
    merged_from: tuple[str, ...] = ()
    muted: bool | tuple[str, ...] = False


class Split(Record, frozen=True, forbid_unknown_fields=True):
    """Which rows were mined and which were kept apart for calibration.

    `share` is the wanted share of mined rows; the `..._sha` are SHA-256 over the sorted ids.
    """

    seed: int
    mine_rows: int
    mine_ids_sha: str
    share: float = 1.0
    stratified: bool = False
    calibration_ids: tuple[str, ...] = ()
    calibration_ids_sha: str = ""


class BuildParams(Record, frozen=True, forbid_unknown_fields=True):
    """What decides a library besides the judge, the prompts and the rows.

    `q`: the most questions drafted from one misjudged pair. `k`: the most clusters. `n_max`: the
    most questions of a cluster. `trim_pct`: percent of a cluster's questions, those farthest from
    its medoid, that are dropped before ordering. `n_init`: starts of k-means, of which the best
    is kept. `merge_quantile`: clusters are asked about as near-duplicates when the cosine of
    their labels is at or above this quantile of all pairs of labels; 0 asks about every pair.
    `merge_cap`: the most clusters merged into one. `overlap_words`: a question that repeats this
    many words of its source pair in a row is rejected.
    """

    q: int = 3
    k: int = 25
    n_max: int = 10
    seed: int = 0
    trim_pct: float = 0.0
    n_init: int = 10
    merge_quantile: float = 0.9
    merge_cap: int = 4
    overlap_words: int = 6


class Library(Record, frozen=True, forbid_unknown_fields=True):
    """Everything that was mined, with everything that decided it.

    `judge` is the model that was mined and `builder` the model that wrote the questions;
    `judge_params` are the judge's sampling parameters. `embedder` is name@revision. `depth` (how
    many questions of a cluster are asked) and `hybrid_threshold` are set by tuning; `parent` is
    the hash of the library that this one was tuned from.
    """

    judge: str
    clusters: tuple[Cluster, ...]
    params: BuildParams
    split: Split
    schema_version: int = SCHEMA_VERSION
    judge_params: dict[str, Any] = {}
    builder: str = ""
    embedder: str = ""
    dataset_fingerprint: str = ""
    prompts_sha: str = ""
    stats: dict[str, Any] = {}
    depth: int | None = None
    hybrid_threshold: float | None = None
    parent: str | None = None
    simulated: bool = False

    @property
    def hash(self) -> str:
        """SHA-256 over the content, 64 hex digits: two libraries with one hash are one library."""
        plain = _WRITER.encode(self)
        return hashlib.sha256(plain).hexdigest()

    @property
    def question_count(self) -> int:
        """Questions in all clusters."""
        return sum(len(cluster.questions) for cluster in self.clusters)


_WRITER = msgspec.json.Encoder(order="deterministic")


def normal(text: str) -> str:
    """A text as it is compared: one case, one width, single spaces, no full stop at the end."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).rstrip(".?!;, ")


def qid_of(condition: str, conclusion: str) -> str:
    """16 hex digits that stand for a question's words."""
    text = f"{normal(condition)}\n{normal(conclusion)}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def ids_sha(ids: list[str] | tuple[str, ...]) -> str:
    """SHA-256 over ids, whatever their order."""
    joined = "\n".join(sorted(ids))
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()


def save_library(library: Library, path: str | os.PathLike[str]) -> str:
    """Write a library whole or not at all.

    Returns:
        Its hash.

    Raises:
        InputError: the file cannot be written.
    """
    where = Path(path)
    found = library.hash
    plain = msgspec.json.format(_WRITER.encode({"hash": found, **_plain(library)}), indent=1)
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(where)) from error
    write_whole(where, plain + b"\n")
    return found


def load_library(path: str | os.PathLike[str]) -> Library:
    """Read a library and see that it is whole.

    Raises:
        InputError: it cannot be read, is no library, was made by a newer version, or its content
            is not what its hash says.
    """
    return _FILE.load(path)


_FILE = RecordFile(
    what="library",
    made_by="dikast sesse build",
    type=Library,
    formats={"schema_version": SCHEMA_VERSION},
    hash_of=lambda library: library.hash,
)


def _plain(library: Library) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(library)
    return {**found, "schema_version": library.schema_version}
