"""Outcomes and labels as columns: what every report on agreement and bias counts from.

Between the reader and the statistics. A pair costs an entry in a table of digests and some bytes
for each judge, never an object, so a million outcomes fit. Verdicts are codes: A = 0, tie = 1,
B = 2, none = -1. A pair is one row whatever the number of files it stands in.
"""

from array import array
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dikast.analysis.rows import LabelRow, OutcomeRow, read_labels, read_outcomes
from dikast.engine.errors import InputError
from dikast.engine.ids import IdTable, digest_of
from dikast.engine.model import Winner

Codes = npt.NDArray[np.int8]
CODE: Final[dict[str, int]] = {"A": 0, "tie": 1, "B": 2}
VALUE: Final = np.array([1.0, 0.0, -1.0])
NONE: Final = -1
_NONE_COLUMN: Final = 3
_CHUNK_EVENTS: Final = 1 << 19
_CLUSTER_FIELDS: Final = ("question_id", "prompt_id")


class Names:
    """Names to small numbers, in order of appearance."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, name: str) -> int:
        """The number of a name, given when it is first met."""
        return self._codes.setdefault(name, len(self._codes))

    @property
    def names(self) -> list[str]:
        """All names; a number is a place in this list."""
        return list(self._codes)


class Votes:
    """One judge's votes: for every pair and order how many said A, tie, B and nothing readable.

    `counts` has the shape (pairs, 2, 4); order 0 is "ab" (response_a shown first), 1 is "ba".
    """

    def __init__(self, counts: npt.NDArray[np.uint16]) -> None:
        self.counts = counts

    def picks(self, order: int) -> Codes:
        """The most common readable vote in one order; level is a tie, no vote is none."""
        votes = self.counts[:, order, :_NONE_COLUMN].astype(np.int32)
        best = votes.max(axis=1)
        code = np.where((votes == best[:, None]).sum(axis=1) > 1, CODE["tie"], votes.argmax(axis=1))
        return np.where(best > 0, code, NONE).astype(np.int8)

    def asked(self, order: int) -> npt.NDArray[np.bool_]:
        """Whether the judge was asked at all in an order."""
        result: npt.NDArray[np.bool_] = self.counts[:, order].sum(axis=1) > 0
        return result

    def verdicts(self) -> Codes:
        """One verdict of both orders by the rule of `swap`: agreed, or a tie where they differ;
        none where an order that was asked gave no readable vote."""
        first, second = self.picks(0), self.picks(1)
        both = np.where(first == second, first, CODE["tie"])
        code = np.where(self.asked(0), np.where(self.asked(1), both, first), second)
        lost = (self.asked(0) & (first == NONE)) | (self.asked(1) & (second == NONE))
        return np.where(lost, NONE, code).astype(np.int8)


class _Events:
    """Votes on their way into counts: small integers in arrays, summed up in chunks."""

    def __init__(self) -> None:
        self._cells = array("q")
        self._tables: list[npt.NDArray[np.uint32]] = []

    def add(self, pair: int, order: int, column: int) -> None:
        self._cells.append((pair * 2 + order) * 4 + column)
        if len(self._cells) >= _CHUNK_EVENTS:
            self._flush()

    def _flush(self) -> None:
        cells, counts = np.unique(np.frombuffer(self._cells, dtype=np.int64), return_counts=True)
        self._tables.append(np.stack([cells, counts]).astype(np.uint32))
        self._cells = array("q")

    def counts(self, pairs: int) -> npt.NDArray[np.uint16]:
        if len(self._cells):
            self._flush()
        flat = np.zeros(pairs * 8, dtype=np.uint16)
        for cells, counts in self._tables:
            np.add.at(flat, cells, counts.astype(np.uint16))
        return flat.reshape(pairs, 2, 4)


class Run:
    """One outcome file: its verdicts, the reasons where there is none, its judges' votes."""

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self.rows = 0
        self.repeated = 0
        self.simulated = 0
        self.cost_usd = 0.0
        self.calls = 0
        self.missing: Counter[str] = Counter()
        self.bases: Counter[str] = Counter()
        self.specs: set[str] = set()
        self.scores: dict[str, Counter[float]] = {}
        self._pair_scores: dict[str, tuple[array[int], array[float]]] = {}
        self._results = array("b")
        self._reasons = array("h")
        self._reason_names = Names()
        self._events: dict[str, _Events] = {}

    def take(self, pair: int, row: OutcomeRow) -> None:
        """Enter one outcome; a later line of a pair counts only where the earlier one failed."""
        self.rows += 1
        while len(self._results) <= pair:
            self._results.append(_UNSEEN)
            self._reasons.append(-1)
        missing = row.missing
        before = self._results[pair]
        if before != _UNSEEN:
            earlier = self._reasons[pair]
            failed = earlier >= 0 and self._reason_names.names[earlier].startswith("failed")
            self.repeated += 1
            if not failed:
                return
            self.missing[self._reason_names.names[earlier]] -= 1
        self._results[pair] = NONE if row.winner is None else CODE[row.winner]
        self._reasons[pair] = -1 if missing is None else self._reason_names.code(missing)
        self.simulated += row.simulated
        self.cost_usd += row.cost_usd
        self.calls += row.calls
        self.specs.add(row.spec)
        if missing is not None:
            self.missing[missing] += 1
        else:
            self.bases[row.basis or ("single" if row.winner else "scored")] += 1
            self._take_scores(pair, row.scores)
        if row.kind != "failed":  # half of its votes are not there
            for vote in row.votes:
                events = self._events.setdefault(vote.judge, _Events())
                column = CODE.get(vote.pick, _NONE_COLUMN)
                events.add(pair, 0 if vote.order == "ab" else 1, column)

    def _take_scores(self, pair: int, scores: dict[str, float]) -> None:
        sides: dict[str, list[float]] = {}
        for name, score in scores.items():
            side, dot, dimension = name.partition(".")
            key = dimension if dot and side in ("A", "B") else name
            self.scores.setdefault(key, Counter())[round(score, 2)] += 1
            sides.setdefault(key, []).append(score)
        for key, given in sides.items():
            pairs, means = self._pair_scores.setdefault(key, (array("q"), array("d")))
            pairs.append(pair)
            means.append(sum(given) / len(given))

    def pair_scores(self, dimension: str, pairs: int) -> npt.NDArray[np.float64]:
        """(pairs,) mean score of a pair's answers in one dimension, NaN where there is none."""
        rows, means = self._pair_scores.get(dimension, (array("q"), array("d")))
        scores = np.full(pairs, np.nan)
        scores[np.array(rows, dtype=np.int64)] = np.array(means, dtype=np.float64)
        return scores

    def results(self, pairs: int) -> Codes:
        """(pairs,) codes; a pair that the file does not have is none like one without verdict."""
        codes = np.full(pairs, NONE, dtype=np.int8)
        codes[: len(self._results)] = np.frombuffer(self._results, dtype=np.int8)
        codes[codes == _UNSEEN] = NONE
        return codes

    def present(self, pairs: int) -> npt.NDArray[np.bool_]:
        """(pairs,) whether the file has an outcome of the pair."""
        there = np.zeros(pairs, dtype=np.bool_)
        there[: len(self._results)] = np.frombuffer(self._results, dtype=np.int8) != _UNSEEN
        return there

    @property
    def judges(self) -> list[str]:
        """Names of the judges whose votes it holds, in order of appearance."""
        return list(self._events)

    def votes(self, judge: str, pairs: int) -> Votes:
        """The votes of one judge."""
        return Votes(self._events[judge].counts(pairs))


_UNSEEN: Final = -2


class People:
    """Labels: every single vote of every annotator, as (pair, annotator, code)."""

    def __init__(self) -> None:
        self.annotators = Names()
        self._pairs, self._who, self._codes = array("l"), array("l"), array("b")
        self.unknown_pairs = 0

    def take(self, pair: int, annotator: str, label: Winner) -> None:
        """Enter one vote."""
        self._pairs.append(pair)
        self._who.append(self.annotators.code(annotator))
        self._codes.append(CODE[label])

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def pairs(self) -> npt.NDArray[np.int64]:
        """(votes,) pair of each vote."""
        return np.array(self._pairs, dtype=np.int64)

    @property
    def who(self) -> npt.NDArray[np.int64]:
        """(votes,) annotator of each vote."""
        return np.array(self._who, dtype=np.int64)

    @property
    def codes(self) -> npt.NDArray[np.int64]:
        """(votes,) code of each vote."""
        return np.array(self._codes, dtype=np.int64)

    def counts(self, pairs: int) -> npt.NDArray[np.float64]:
        """(pairs, 3) votes for A, tie and B."""
        flat = np.bincount(self.pairs * 3 + self.codes, minlength=pairs * 3)
        return flat.reshape(pairs, 3).astype(np.float64)


class Ratings:
    """All that was read, by pair: runs, labels, categories, prompts, models.

    Args:
        cluster_field: field of `meta` that names a pair's prompt; by default `question_id` or
            `prompt_id` where a pair has one, else the pair is its own prompt.
    """

    def __init__(self, cluster_field: str | None = None) -> None:
        self.runs: list[Run] = []
        self.people = People()
        self.categories, self.prompts, self.models = Names(), Names(), Names()
        self.label_conflicts = 0
        self.own_prompt = 0
        self._fields = (cluster_field,) if cluster_field else _CLUSTER_FIELDS
        self._ids = IdTable()
        self._count = 0
        self._keys = array("Q")  # of the ids; the same in every process and order of lines
        self._labels, self._category = array("b"), array("l")
        self._prompt, self._model_a, self._model_b = array("l"), array("l"), array("l")

    def __len__(self) -> int:
        return self._count

    def find(self, pair_id: str) -> int | None:
        """The row of a pair, None when no outcome or label named it."""
        return self._ids.get(pair_id)

    def _row(self, pair_id: str) -> int:
        found = self._ids.add(pair_id, self._count)
        if found is not None:
            return found
        self._count += 1
        self._keys.append(digest_of(pair_id))
        self._labels.append(NONE)
        for column in (self._category, self._prompt, self._model_a, self._model_b):
            column.append(-1)
        return self._count - 1

    def read_run(self, path: str, name: str | None = None) -> Run:
        """Read an outcome file.

        Raises:
            InputError: it is no outcome file, or a pair has other models than in an earlier one.
        """
        run = Run(name or stem(path), path)
        for row in read_outcomes(path):
            pair = self._row(row.id)
            self._describe(pair, row, path)
            run.take(pair, row)
        self.runs.append(run)
        return run

    def _describe(self, pair: int, row: OutcomeRow, path: str) -> None:
        if row.label is not None:
            code = CODE[row.label]
            self.label_conflicts += self._labels[pair] not in (NONE, code)
            if self._labels[pair] == NONE:
                self._labels[pair] = code
        if row.category is not None and self._category[pair] < 0:
            self._category[pair] = self.categories.code(row.category)
        if self._prompt[pair] < 0:
            self._prompt[pair] = self._prompt_of(row.meta)
        for column, model in ((self._model_a, row.model_a), (self._model_b, row.model_b)):
            if model is None:
                continue
            code = self.models.code(model)
            if column[pair] not in (-1, code):
                raise InputError(
                    f"pair {row.id!r} compares other models here than in another file; files "
                    "read together must name the same pairs by the same ids",
                    file=path,
                )
            column[pair] = code

    def _prompt_of(self, meta: dict[str, Any]) -> int:
        for field in self._fields:
            value = meta.get(field)
            if isinstance(value, (str, int)):
                return self.prompts.code(f"{field}={value}")
        return -1

    def set_prompt(self, pair: int, prompt: str) -> None:
        """Say which prompt a pair belongs to, over what its meta says."""
        self._prompt[pair] = self.prompts.code(prompt)

    def prompt_of(self, pair: int) -> int | None:
        """The number of a pair's prompt; None where the pair names none."""
        code = self._prompt[pair]
        return code if code >= 0 else None

    def read_labels(self, path: str, keep: Callable[[str], bool] | None = None) -> None:
        """Read people's labels; those of pairs that no outcome names are kept for the ceiling.

        Args:
            path: see `dikast.analysis.rows.read_labels`.
            keep: whether to take an annotator's labels; all by default.

        Raises:
            InputError: it cannot be read or a row is not a label.
        """
        for row in read_labels(path):
            if keep is None or keep(row.annotator):
                self.take_label(row)

    def take_label(self, row: LabelRow) -> None:
        """Enter one label."""
        before = self._count
        pair = self._row(row.pair_id)
        self.people.unknown_pairs += self._count > before
        if row.category is not None and self._category[pair] < 0:
            self._category[pair] = self.categories.code(row.category)
        self.people.take(pair, row.annotator, row.label)

    @property
    def category(self) -> npt.NDArray[np.int64]:
        """(pairs,) category codes, -1 where there is none."""
        return np.array(self._category, dtype=np.int64)

    @property
    def model_a(self) -> npt.NDArray[np.int64]:
        """(pairs,) codes of the models of response_a, -1 where unknown."""
        return np.array(self._model_a, dtype=np.int64)

    @property
    def model_b(self) -> npt.NDArray[np.int64]:
        """(pairs,) codes of the models of response_b, -1 where unknown."""
        return np.array(self._model_b, dtype=np.int64)

    @property
    def clusters(self) -> npt.NDArray[np.int64]:
        """(pairs,) prompt codes; a pair without a known prompt is a prompt of its own.

        Codes are in order of a digest of the prompt's name, not of appearance: outcomes are
        written as they come, and the intervals must not depend on that.
        """
        prompts = np.array(self._prompt, dtype=np.int64)
        names = [digest_of(name) for name in self.prompts.names] or [0]
        own = np.array(self._keys, dtype=np.uint64)
        keys = np.where(prompts >= 0, np.array(names, dtype=np.uint64)[prompts], own)
        _, codes = np.unique(keys, return_inverse=True)
        return codes.astype(np.int64)

    @property
    def clustered(self) -> bool:
        """Whether any pair names its prompt."""
        return len(self.prompts.names) > 0

    def truth(self, rule: str = "majority") -> Codes:
        """(pairs,) one label a pair: from people's votes if any were read, else the outcomes' own.

        Args:
            rule: "majority": what more than half say, else no label; "plurality": what most say,
                a tie when that is level.
        """
        if not len(self.people):
            return np.array(self._labels, dtype=np.int8)
        counts = self.people.counts(self._count)
        total, best = counts.sum(axis=1), counts.max(axis=1)
        if rule == "majority":
            voted = np.where(2 * best > total, counts.argmax(axis=1), NONE)
        else:
            level = (counts == best[:, None]).sum(axis=1) > 1
            voted = np.where(level, CODE["tie"], counts.argmax(axis=1))
        return np.where(total > 0, voted, NONE).astype(np.int8)


def stem(path: str) -> str:
    """A file's name without folder and endings."""
    name = Path(path).name
    for ending in (".gz", ".zst", ".zstd", ".jsonl", ".ndjson", ".json"):
        name = name.removesuffix(ending)
    return name or path
