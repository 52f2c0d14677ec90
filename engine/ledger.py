"""The ledger: what came in equals what went out, by name. Every pair passes it twice.

A row is entered when it is read from the source, and booked once when its fate is known:
judged, undecided, failed (by reason), skipped (done by an earlier run) or not run. A ledger that
does not add up is a defect of the engine, and the run says so instead of calling itself complete.
"""

from collections import Counter

from dikast.engine.model import Failed, Outcome, Record, Scored, Undecided, Usage, Verdict


class Ledger(Record, frozen=True):
    """Counts at one moment. `input` is the number of rows read from the source.

    `handed_back` rows were given to another worker of their group, whose ledger has them.
    `verdicts` breaks `judged` down by winner and basis, for example {"A agree": 12}; single
    answers that were scored count as "scored".
    `calls` counts judge calls behind the booked outcomes; `stored_calls` those of them that an
    earlier run or an identical call had already paid. `spent_usd` is what this run paid.
    """

    input: int = 0
    judged: int = 0
    undecided: dict[str, int] = {}
    failed: dict[str, int] = {}
    skipped: int = 0
    not_run: int = 0
    handed_back: int = 0
    verdicts: dict[str, int] = {}
    calls: int = 0
    stored_calls: int = 0
    usage: Usage = Usage()
    spent_usd: float = 0.0
    input_complete: bool = False

    @property
    def undecided_total(self) -> int:
        """All undecided pairs."""
        return sum(self.undecided.values())

    @property
    def failed_total(self) -> int:
        """All failed pairs."""
        return sum(self.failed.values())

    @property
    def accounted(self) -> int:
        """Rows whose fate is booked."""
        told = self.judged + self.undecided_total + self.failed_total + self.skipped
        return told + self.not_run + self.handed_back

    def adds_up(self) -> bool:
        """True when every row read has exactly one fate."""
        return self.input == self.accounted

    def lines(self) -> list[str]:
        """The ledger for people, one line a kind; the sum stands at the end."""
        rows = [("input", self.input, ""), ("judged", self.judged, _detail(self.verdicts))]
        rows += [("undecided", self.undecided_total, _detail(self.undecided))]
        rows += [("failed", self.failed_total, _detail(self.failed))]
        rows += [("skipped", self.skipped, "already done" if self.skipped else "")]
        rows += [("not run", self.not_run, "")]
        if self.handed_back:
            rows += [("handed on", self.handed_back, "to another worker of the group")]
        width = max(len(f"{count:,}") for _, count, _ in rows)
        out = [f"{name:<10} {count:>{width},}  {note}".rstrip() for name, count, note in rows]
        if not self.adds_up():
            out.append(
                f"DOES NOT ADD UP: {self.accounted:,} of {self.input:,} rows are accounted for; "
                "please report this as a defect"
            )
        return out


class Held(Record, frozen=True):
    """What an output holds of all runs on it, in the words of the ledger; one count an id."""

    judged: int = 0
    undecided: dict[str, int] = {}
    failed: dict[str, int] = {}
    verdicts: dict[str, int] = {}

    @property
    def rows(self) -> int:
        """All outcomes."""
        return self.judged + sum(self.undecided.values()) + sum(self.failed.values())

    def plus(self, run: Ledger) -> "Held":
        """With what a run has added."""
        return Held(
            judged=self.judged + run.judged,
            undecided=_sum(self.undecided, run.undecided),
            failed=_sum(self.failed, run.failed),
            verdicts=_sum(self.verdicts, run.verdicts),
        )

    def lines(self) -> list[str]:
        """For people, one line a kind."""
        rows = [
            ("rows", self.rows, ""),
            ("judged", self.judged, _detail(self.verdicts)),
            ("undecided", sum(self.undecided.values()), _detail(self.undecided)),
            ("failed", sum(self.failed.values()), _detail(self.failed)),
        ]
        width = max(len(f"{count:,}") for _, count, _ in rows)
        return [f"{name:<10} {count:>{width},}  {note}".rstrip() for name, count, note in rows]


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return dict(Counter(one) + Counter(other))


def _detail(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


class LedgerBook:
    """The mutable side, owned by one run."""

    def __init__(self) -> None:
        self._input = 0
        self._judged = 0
        self._skipped = 0
        self._not_run = 0
        self._handed_back = 0
        self._undecided: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._verdicts: Counter[str] = Counter()
        self._calls = 0
        self._stored_calls = 0
        self._tokens = [0, 0, 0, 0, 0]
        self._input_complete = False

    def enter(self) -> None:
        """A row was read from the source."""
        self._input += 1

    def skip(self) -> None:
        """The row was done by an earlier run."""
        self._skipped += 1

    def leave_unrun(self, count: int = 1) -> None:
        """Rows were read, and the run stopped before they had an outcome."""
        self._not_run += count

    def hand_back(self) -> None:
        """The row belongs to another worker of its group now, who books it."""
        self._handed_back += 1

    def complete_input(self) -> None:
        """The source has no more rows."""
        self._input_complete = True

    def book(self, outcome: Outcome) -> None:
        """An outcome was accepted by the sink."""
        if isinstance(outcome, Verdict):
            self._judged += 1
            self._verdicts[f"{outcome.winner} {outcome.basis}"] += 1
        elif isinstance(outcome, Scored):
            self._judged += 1
            self._verdicts["scored"] += 1
        elif isinstance(outcome, Undecided):
            self._undecided[outcome.why] += 1
        elif isinstance(outcome, Failed):
            self._failed[outcome.reason] += 1
        self._calls += outcome.calls
        self._stored_calls += outcome.stored_calls
        usage, tokens = outcome.usage, self._tokens
        tokens[0] += usage.input
        tokens[1] += usage.cached_input
        tokens[2] += usage.cache_write
        tokens[3] += usage.output
        tokens[4] += usage.reasoning

    def snapshot(self, spent_usd: float = 0.0) -> Ledger:
        """The counts now."""
        tokens = self._tokens
        return Ledger(
            input=self._input,
            judged=self._judged,
            undecided=dict(self._undecided),
            failed=dict(self._failed),
            skipped=self._skipped,
            not_run=self._not_run,
            handed_back=self._handed_back,
            verdicts=dict(self._verdicts),
            calls=self._calls,
            stored_calls=self._stored_calls,
            usage=Usage(
                input=tokens[0],
                cached_input=tokens[1],
                cache_write=tokens[2],
                output=tokens[3],
                reasoning=tokens[4],
            ),
            spent_usd=spent_usd,
            input_complete=self._input_complete,
        )

    def __repr__(self) -> str:
        return f"LedgerBook({self.snapshot().lines()!r})"
