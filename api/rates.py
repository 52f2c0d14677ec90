"""How often judges tie, disagree or cannot be read, measured in an earlier output.

Off the journey: read by `dikast check --rates`, so that the calls to expect rest on what was seen
and not on what is assumed. Holds counts only, never the outcomes.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from dikast.engine.errors import InputError
from dikast.engine.files import decoded_rows
from dikast.engine.model import Failed, Outcome, Record, Undecided, Verdict
from dikast.strategies import ASSUMED, Rates


class Measured(Record, frozen=True):
    """Rates with what they were measured on.

    `pairs` outcomes in the file, `verdicts` of them verdicts; `missing` names the rates that it
    could not tell (those assumed stand). `mean_calls` is the mean number of calls for a pair that
    did not fail, and `spec` that of the outcomes, None where there were several.
    """

    rates: Rates
    pairs: int
    verdicts: int
    missing: tuple[str, ...]
    mean_calls: float
    spec: str | None


def read_rates(path: str) -> Measured:
    """Measure the rates of an output of `dikast judge`.

    Raises:
        InputError: it cannot be read, is no output, or holds no outcome.
    """
    count: Counter[str] = Counter()
    likes: Counter[str] = Counter()
    asked: Counter[int] = Counter()
    sent_on: Counter[int] = Counter()
    specs: set[str] = set()
    for outcome in _outcomes(path):
        count["pairs"] += 1
        specs.add(outcome.spec)
        if isinstance(outcome, Failed):
            count["failed"] += 1
            continue
        count["calls"] += outcome.calls
        count["answered"] += 1
        count["votes"] += len(outcome.votes)
        count["unread"] += sum(vote.pick == "none" for vote in outcome.votes)
        if isinstance(outcome, Verdict | Undecided) and outcome.strategy.startswith("cascade@"):
            for number, part in enumerate(outcome.parts):
                asked[number] += 1
                sent_on[number] += part is not outcome.parts[-1]
        if isinstance(outcome, Verdict):
            _take_verdict(outcome, count, likes)
    if not count["pairs"]:
        raise InputError("holds no outcome to measure rates on", file=path)
    return _measured(count, likes, asked, sent_on, specs)


def _take_verdict(verdict: Verdict, count: Counter[str], likes: Counter[str]) -> None:
    count["verdicts"] += 1
    count["tie"] += verdict.winner == "tie"
    marks = verdict.marks
    apart = verdict.basis == "disagree" or (marks is not None and marks.majority_share < 1)
    count["disagreement"] += apart
    if marks is not None:
        count["marked"] += 1
        count["low_margin"] += marks.margin < 0.5
    if verdict.basis == "votes" and verdict.winner != "tie":
        for part in verdict.parts:
            like = "like" if part.pick == verdict.winner else part.pick
            likes[like if like in ("like", "tie", "none") else "against"] += 1


def _measured(
    count: Counter[str],
    likes: Counter[str],
    asked: Counter[int],
    sent_on: Counter[int],
    specs: set[str],
) -> Measured:
    assumed = ASSUMED
    found: dict[str, object] = {"failed": count["failed"] / count["pairs"]}
    for name, of in (
        ("unparsed", "votes"),
        ("tie", "verdicts"),
        ("disagreement", "verdicts"),
        ("low_margin", "marked"),
    ):
        if count[of]:
            found[name] = count["unread" if name == "unparsed" else name] / count[of]
    if total := sum(likes.values()):
        found["votes"] = tuple(likes[name] / total for name in ("like", "against", "tie", "none"))
    if asked:
        found["rungs"] = tuple(sent_on[number] / asked[number] for number in sorted(asked))
    missing = [name for name in assumed.__struct_fields__ if name not in found and name != "rungs"]
    return Measured(
        rates=msgspec.structs.replace(assumed, **found),
        pairs=count["pairs"],
        verdicts=count["verdicts"],
        missing=tuple(missing),
        mean_calls=count["calls"] / max(1, count["answered"]),
        spec=specs.pop() if len(specs) == 1 else None,
    )


def _outcomes(path: str) -> Iterator[Outcome]:
    decoder: msgspec.json.Decoder[Outcome] = msgspec.json.Decoder(Outcome)
    rows = decoded_rows(path, decoder.decode, "is not an outcome written by dikast judge")
    return (outcome for _, outcome in rows)
