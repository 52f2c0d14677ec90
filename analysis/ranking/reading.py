"""From files to battles: outcomes of `dikast judge`, battle logs, recorded verdicts, votes, CSV.

The first step of a ranking. A row says which two models met, who won, and, if it can, on which
prompt, before which judge and in which order; what it does not say may come from the judged pairs
themselves (`PairFacts`). Rows without a winner are counted by their reason and never guessed.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec

from dikast.analysis.ranking.battles import BattleLog, Result
from dikast.engine.chat import MisfitError
from dikast.engine.errors import InputError
from dikast.engine.files import csv_rows, rows_in
from dikast.engine.labels import winner_of
from dikast.engine.model import Order

Use = Literal["winner", "label", "votes"]

_PLAIN: Final[Mapping[Any, Result]] = {"A": "A", "B": "B", "tie": "tie"}
_SIDES: Final[Mapping[Any, Result]] = {"left": "A", "right": "B", "inconsistent": "disagree"}
_PROMPT_FIELDS: Final = ("prompt", "prompt_id", "question_id", "question")
_WHAT_IS_NEEDED: Final = "a row of battles has model_a, model_b and winner (A, B or tie)"


class PairFacts(NamedTuple):
    """What the judged pair itself says: names of models, its prompt, differences A minus B."""

    model_a: str | None
    model_b: str | None
    prompt: str
    covariates: tuple[float, ...] = ()


class _Vote(msgspec.Struct, gc=False):
    judge: str = ""
    annotator: str = ""
    order: Order | None = None
    pick: str | None = None
    label: Any = None


class _Row(msgspec.Struct):
    """The fields of any known row that a ranking needs; the others are skipped unread."""

    kind: str | None = None
    id: Any = None
    pair_id: Any = None
    model_a: Any = None
    model_b: Any = None
    left: Any = None
    right: Any = None
    winner: Any = None
    verdict: Any = None
    label: Any = None
    basis: str | None = None
    inconsistent: Any = None
    why: Any = None
    reason: Any = None
    judge: Any = None
    annotator: Any = None
    worker: Any = None
    order: Any = None
    repeat: Any = None
    prompt: Any = None
    prompt_id: Any = None
    question_id: Any = None
    question: Any = None
    meta: dict[str, Any] = {}
    votes: list[_Vote] = []
    strategy: str = ""
    simulated: bool = False


class BattleReader:
    """Enters the rows of one file after another into a log.

    Args:
        log: where the battles go.
        use: "winner" (verdicts), "label" (what people said), or "votes" (every judge's own).
        cluster: the field that names the prompt, dotted below meta; found by itself by default.
        group: the field to rank apart by, such as category; none by default.
        judges: patterns of judges' names, `*` stands for anything; all judges by default.
        pairs: facts by pair id, where the rows do not say enough.
    """

    def __init__(
        self,
        log: BattleLog,
        *,
        use: Use = "winner",
        cluster: str | None = None,
        group: str | None = None,
        judges: Sequence[str] = (),
        pairs: Mapping[str, PairFacts] | None = None,
    ) -> None:
        self.log = log
        self.rows = 0
        self.simulated = 0
        self._use = use
        self._cluster = cluster
        self._group = group
        self._judges = judges
        self._pairs = pairs
        self._decode = msgspec.json.Decoder(_Row).decode
        self._decode_whole = msgspec.json.Decoder(dict[str, Any]).decode

    def read(self, path: str | Path) -> None:
        """Take every row of a file: JSON lines or an array, also packed, or CSV with a header.

        Raises:
            InputError: it cannot be read, or a row is not one of battles.
        """
        if str(path).endswith(".csv"):
            for line, fields in csv_rows(path):
                self._take(_converted(fields, str(path), line), fields, str(path), line)
            return
        for line, raw in rows_in(path):
            self.take(raw, str(path), line)

    def take(self, raw: bytes, file: str, line: int) -> None:
        """Take one row of JSON.

        Raises:
            InputError: it is not a row of battles.
        """
        try:
            row = self._decode(raw)
            whole = self._decode_whole(raw) if self._cluster or self._group else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(
                f"is not a row of battles ({error}); {_WHAT_IS_NEEDED}", file=file, line=line
            ) from error
        self._take(row, whole, file, line)

    def _take(self, row: _Row, whole: Mapping[str, Any] | None, file: str, line: int) -> None:
        self.rows += 1
        self.simulated += row.simulated
        given = row.pair_id if row.pair_id is not None else row.id
        item = f"{file}\n{line}" if given is None else str(given)
        facts = self._pairs.get(item) if self._pairs is not None else None
        names = self._models(row, facts)
        if names is None:
            known = self._pairs is None or facts is not None
            self.log.left_out["without model names" if known else "not among the pairs"] += 1
            return
        if self._pairs is not None and facts is None:
            self.log.left_out["not among the pairs"] += 1
            return
        prompt, source = self._prompt(row, whole, facts, file, line)
        group = "" if self._group is None else self._named(whole, self._group, "--by", file, line)
        covariates = facts.covariates if facts is not None else ()
        identity = None if row.id is None else str(row.id)
        first = 0 if row.repeat is None else _whole_number(row.repeat, file, line)
        seen: dict[tuple[str, Order | None], int] = {}
        for judge, order, result in self._results(row, names, file, line):
            if self._judges and not any(fnmatchcase(judge, each) for each in self._judges):
                self.log.left_out["before other judges"] += 1
                continue
            repeat = seen.get((judge, order), first)
            seen[judge, order] = repeat + 1
            self.log.clustered_by[source] += 1
            self.log.add(
                item,
                *names,
                result,
                cluster=prompt,
                judge=judge,
                group=group,
                order=order,
                repeat=repeat,
                covariates=covariates,
                identity=identity,
            )

    def _models(self, row: _Row, facts: PairFacts | None) -> tuple[str, str] | None:
        model_a = row.model_a if row.model_a not in (None, "") else row.left
        model_b = row.model_b if row.model_b not in (None, "") else row.right
        if facts is not None:
            model_a = facts.model_a if model_a in (None, "") else model_a
            model_b = facts.model_b if model_b in (None, "") else model_b
        if model_a in (None, "") or model_b in (None, ""):
            return None
        return str(model_a), str(model_b)

    def _prompt(
        self,
        row: _Row,
        whole: Mapping[str, Any] | None,
        facts: PairFacts | None,
        file: str,
        line: int,
    ) -> tuple[str | None, str]:
        """The prompt as a text and what named it; None where the pair stands for itself."""
        if self._cluster is not None:
            return self._named(whole, self._cluster, "--cluster", file, line), self._cluster
        if facts is not None:
            return facts.prompt, "question of the pair"
        for name in _PROMPT_FIELDS:
            value = getattr(row, name)
            if value in (None, ""):
                value = row.meta.get(name)
            if value not in (None, ""):
                return str(value), name
        return None, "pair"

    def _named(
        self, whole: Mapping[str, Any] | None, field: str, option: str, file: str, line: int
    ) -> str:
        """The value of a field that an option names.

        Raises:
            InputError: the row has none.
        """
        value = _at(whole, field)
        if value is None:
            raise InputError(f"is absent, but {option} names it", file=file, line=line, field=field)
        return str(value)

    def _results(
        self, row: _Row, names: tuple[str, str], file: str, line: int
    ) -> list[tuple[str, Order | None, Result]]:
        """(judge, order, result) of every battle in a row; what is none is counted."""
        if self._use == "votes":
            return self._votes(row, names, file, line)
        if self._use == "label":
            label = _result(row.label, names, file, line)
            return self._one("labels", None, label, "without a label")
        if row.kind in ("undecided", "failed"):
            self.log.left_out[f"{row.kind}: {row.why or row.reason or 'no reason given'}"] += 1
            return []
        if row.kind == "verdict":
            result = _result(row.winner, names, file, line)
            split = row.basis == "disagree"
            votes = row.votes
            same = bool(votes) and all(vote.judge == votes[0].judge for vote in votes)
            by: str = votes[0].judge if same else row.strategy
            return self._one(by, None, "disagree" if split else result, "without a winner")
        said = _first(row.winner, row.verdict, row.label)
        result = _result(said, names, file, line)
        split = result == "tie" and row.inconsistent in (True, "true")
        order: Order | None = row.order if row.order in ("ab", "ba") else None
        named = _first(row.judge, row.annotator, row.worker)
        judge = "" if named is None else str(named)
        return self._one(judge, order, "disagree" if split else result, "without a winner")

    def _one(
        self, judge: str, order: Order | None, result: Result | None, why_not: str
    ) -> list[tuple[str, Order | None, Result]]:
        if result is not None:
            return [(judge, order, result)]
        self.log.left_out[why_not] += 1
        return []

    def _votes(
        self, row: _Row, names: tuple[str, str], file: str, line: int
    ) -> list[tuple[str, Order | None, Result]]:
        found: list[tuple[str, Order | None, Result]] = []
        if not row.votes:
            self.log.left_out["without votes"] += 1
        for vote in row.votes:
            said = vote.pick if vote.pick is not None else vote.label
            result = None if said in ("none", "na") else _result(said, names, file, line)
            by = vote.judge or vote.annotator
            found += self._one(by, vote.order, result, "votes without a pick")
        return found


def _at(row: Any, path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    for part in path.split("."):
        row = cast("Mapping[str, Any]", row).get(part) if isinstance(row, Mapping) else None
    return row


def _first(*values: Any) -> Any:
    return next((value for value in values if value not in (None, "")), None)


def _result(value: Any, names: tuple[str, str], file: str, line: int) -> Result | None:
    """Who won: A, B or tie in any known way of writing it, or the winner's own name."""
    if isinstance(value, str) and value in _PLAIN and value not in names:
        return _PLAIN[value]
    if value in (None, ""):
        return None
    if value in names and names[0] != names[1]:
        return "A" if value == names[0] else "B"
    if isinstance(value, str) and value in _SIDES:
        return _SIDES[value]
    try:
        return winner_of("winner", value, numbers=True)
    except MisfitError as error:
        raise InputError(
            f"{error.message}; {_WHAT_IS_NEEDED}", file=file, line=line, field="winner"
        ) from error


def _whole_number(value: Any, file: str, line: int) -> int:
    if value in (None, ""):
        return 0
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise InputError("is not a whole number", file=file, line=line, field="repeat") from error


def _converted(fields: Mapping[str, Any], file: str, line: int) -> _Row:
    """A CSV row; empty cells are absent."""
    try:
        return msgspec.convert(
            {name: value for name, value in fields.items() if value not in (None, "")},
            _Row,
            strict=False,
        )
    except msgspec.ValidationError as error:
        raise InputError(
            f"is not a row of battles ({error}); {_WHAT_IS_NEEDED}", file=file, line=line
        ) from error
