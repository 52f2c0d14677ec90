"""The stages of `dikast benchmark build`: each reads the artefact before it and writes its own.

Three clean the log without asking anyone, in one pass; three ask models, through the engine, a
dialogue at a time and in order. Every dialogue that does not go on is written with its reason.
"""

import argparse
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from dikast.analysis.benchmark_account import Account, Stage
from dikast.analysis.benchmark_format import Dialogue, examine
from dikast.analysis.benchmark_logs import Logged, Misfit, read_logs
from dikast.analysis.benchmark_privacy import masked, personal_in
from dikast.analysis.near_duplicates import NearDuplicates
from dikast.commands.benchmark_files import Artefact, Rejected, read_dialogues
from dikast.commands.rounds import Rounds
from dikast.engine.chat import asked
from dikast.engine.errors import InputError
from dikast.engine.model import Failed, Outcome, Pair, Undecided, Verdict
from dikast.engine.ports import Strategy
from dikast.engine.sources import IterableSource
from dikast.strategies.benchmark_screen import screened_in

FORMAT, PRIVACY, DUPLICATES = "1-format.jsonl", "2-privacy.jsonl", "3-duplicates.jsonl"
SCREEN, ANSWERS, CHALLENGE = "4-screen.jsonl", "5-answers.jsonl", "6-challenge.jsonl"
TURNED_AWAY = "6-challenge-rejected.jsonl"

Next = Dialogue | tuple[str, str | None]
"""A dialogue that goes on, or the reason (and the detail) why it does not."""


class Refusals:
    """Writes down who does not go on."""

    def __init__(self, artefact: Artefact) -> None:
        self._artefact = artefact

    def note(self, stage: Stage, dialogue: Dialogue, reason: str, detail: str | None) -> None:
        """Count and write one dialogue that a stage turned away."""
        stage.rejected[reason] += 1
        self._artefact.write(
            Rejected(
                id=dialogue.id,
                stage=stage.name,
                reason=reason,
                detail=detail,
                file=dialogue.file,
                line=dialogue.line,
                log_id=dialogue.log_id,
            )
        )


def clean(
    args: argparse.Namespace, folder: Path, account: Account, refusals: Refusals, seed: int
) -> None:
    """Format, privacy and near duplicates, in one pass over the log and in bounded memory.

    Raises:
        InputError: a log cannot be read, or there is nothing in them.
        SinkError: an artefact cannot be written.
    """
    stages = [account.stage(name) for name in ("format", "privacy", "duplicates")]
    with ExitStack() as stack:
        artefacts = [
            stack.enter_context(Artefact(folder / name)) for name in (FORMAT, PRIVACY, DUPLICATES)
        ]
        table = stack.enter_context(NearDuplicates(args.similarity, seed=seed))
        steps: list[Callable[[Dialogue, Stage], Next]] = [
            lambda dialogue, stage: _formatted(dialogue, stage, args.max_chars),
            lambda dialogue, stage: _private(dialogue, stage, mask=args.personal == "mask"),
            lambda dialogue, _: _first(dialogue, table),
        ]
        for row in islice(read_logs(args.logs), args.limit):
            account.rows += 1
            dialogue = _dialogue(row, account.rows)
            if isinstance(row.item, Misfit):
                refusals.note(stages[0], dialogue, row.item.reason, _at(row.item))
                continue
            for step, stage, artefact in zip(steps, stages, artefacts, strict=True):
                result = step(dialogue, stage)
                if not isinstance(result, Dialogue):
                    refusals.note(stage, dialogue, *result)
                    break
                dialogue = result
                stage.kept += 1
                artefact.write(dialogue)
        if not account.rows:
            raise InputError("there is no row in it", file=", ".join(map(str, args.logs)))


def _dialogue(row: Logged, number: int) -> Dialogue:
    messages = () if isinstance(row.item, Misfit) else row.item
    return Dialogue(
        id=f"d{number:07}", messages=messages, file=row.file, line=row.line, log_id=row.log_id
    )


def _at(misfit: Misfit) -> str:
    turn = "" if misfit.turn is None else f"turn {misfit.turn + 1}: "
    return turn + misfit.message


def _formatted(dialogue: Dialogue, stage: Stage, chars_max: int) -> Next:
    seen = examine(dialogue.messages, chars_max=chars_max)
    if seen.reason is not None:
        worst = next(each for each in seen.findings if not each.fixable)
        turn = "" if worst.turn is None else f"turn {worst.turn + 1}: "
        return seen.reason, turn + worst.message
    stage.repair(seen.repairs)
    return msgspec.structs.replace(dialogue, messages=seen.messages, repairs=seen.repairs)


def _private(dialogue: Dialogue, stage: Stage, *, mask: bool) -> Next:
    found = personal_in(dialogue.messages)
    if not found:
        return dialogue
    kinds = tuple(dict.fromkeys(f"personal_{each.kind}" for each in found))
    if not mask:
        places = ", ".join(f"{each.kind} in turn {each.turn + 1}" for each in found[:5])
        return kinds[0], places
    stage.repair(kinds)
    return msgspec.structs.replace(
        dialogue, messages=masked(dialogue.messages), repairs=(*dialogue.repairs, *kinds)
    )


def _first(dialogue: Dialogue, table: NearDuplicates) -> Next:
    twin = table.add(dialogue.id, dialogue.asked())
    if twin is None:
        return dialogue
    return "near_duplicate", f"of {twin.of}, similarity {twin.similarity:.3f}"


# --- stages that ask models ---------------------------------------------------------------------


class _StageSink:
    """Outcomes of a stage, turned into its artefact as they come."""

    def __init__(self, take: Callable[[Outcome], None]) -> None:
        self._take = take

    async def write(self, outcome: Outcome) -> None:
        """Take one. Source: `Sink.write`."""
        self._take(outcome)

    async def flush(self) -> None:
        """The artefact is flushed when its stage ends."""

    async def aclose(self) -> None:
        """The artefact is closed by whoever opened it."""


async def ask_stage(
    rounds: Rounds,
    strategy: Strategy,
    stage: Stage,
    refusals: Refusals,
    *,
    given: Path,
    into: Artefact,
    read: Callable[[Dialogue, Outcome], Next],
    away: Artefact | None = None,
    total: int,
) -> None:
    """Judge every dialogue of an artefact; those that go on make the next one.

    Args:
        rounds: an open engine.
        strategy: what to ask.
        stage: its counts.
        refusals: takes those that do not go on.
        given: the artefact before.
        into: the artefact of this stage.
        read: a dialogue and its outcome as what comes next.
        away: also takes those that were turned away by a verdict, with their texts.
        total: dialogues in `given`, for progress.

    Raises:
        RunStopped: the run had to stop; the same command resumes.
        SinkError: an artefact cannot be written.
    """

    def take(outcome: Outcome) -> None:
        dialogue: Dialogue = outcome.meta["dialogue"]
        result: Next
        if isinstance(outcome, Failed):
            result = f"failed_{outcome.reason}", outcome.message
        else:
            result = read(dialogue, outcome)
        if isinstance(result, Dialogue):
            stage.kept += 1
            into.write(result)
            return
        refusals.note(stage, dialogue, *result)
        if away is not None and isinstance(outcome, Verdict):
            away.write(msgspec.structs.replace(dialogue, turned_away=result[0]))

    source = IterableSource(_pairs(given))
    await rounds.run(strategy, source, _StageSink(take), total=total)


def _pairs(path: Path) -> Iterator[Pair]:
    for dialogue in read_dialogues(path):
        question, messages = asked(dialogue.messages)
        yield Pair(
            id=dialogue.id,
            question=question,
            messages=messages,
            response_a=dialogue.response_a or "",
            response_b=dialogue.response_b or "",
            category=dialogue.topic,
            # The dialogue travels along, so that nothing has to be joined when it comes back.
            meta={"dialogue": dialogue},
        )


def after_screen(dialogue: Dialogue, outcome: Outcome) -> Next:
    """Sound prompts of a known topic go on."""
    screened = screened_in(outcome)
    if screened is None:
        return f"screen_{_why(outcome)}", _detail(outcome)
    if screened.fault != "none":
        return screened.fault, None
    if screened.topic == "Other":
        return "other_topic", None
    return msgspec.structs.replace(dialogue, topic=screened.topic)


def after_answers(seed: int) -> Callable[[Dialogue, Outcome], Next]:
    """Dialogues with two answers that differ go on; a coin, fixed by seed and id, decides which
    of the two is A, so that the place tells nobody who wrote it."""

    def read(dialogue: Dialogue, outcome: Outcome) -> Next:
        strong, weak = outcome.votes
        for side, vote in (("strong", strong), ("weak", weak)):
            if vote.text is None:
                return f"{side}_answer_{vote.why}", vote.judge
        if strong.text == weak.text:
            return "answers_identical", None
        data = f"side\x1f{dialogue.id}".encode()
        key = str(seed).encode()[:64]
        first = hashlib.blake2b(data, digest_size=1, key=key).digest()[0] & 1
        a, b = (strong, weak) if first else (weak, strong)
        return msgspec.structs.replace(
            dialogue,
            response_a=a.text,
            response_b=b.text,
            model_a=a.judge,
            model_b=b.judge,
            strong="A" if first else "B",
        )

    return read


def after_challenge(dialogue: Dialogue, outcome: Outcome) -> Next:
    """Prompts whose strong answer is better in both orders stay."""
    if not isinstance(outcome, Verdict):
        return f"judge_{_why(outcome)}", _detail(outcome)
    if outcome.basis == "disagree":
        return "orders_disagree", None
    if outcome.winner == "tie":
        return "no_difference", None
    return dialogue if outcome.winner == dialogue.strong else ("weak_better", None)


def _why(outcome: Outcome) -> str:
    return outcome.why if isinstance(outcome, Undecided) else "unparsed"


def _detail(outcome: Outcome) -> str | None:
    return outcome.detail if isinstance(outcome, Undecided) else None


def calls_of(stages: Sequence[Stage]) -> list[dict[str, Any]]:
    """The calls that are to come, before anyone was asked: exact for the first, else the most."""
    left = stages[-1].kept
    return [
        {"stage": name, "dialogues": left, "calls": left * each}
        for name, each in (("screen", 1), ("answers", 2), ("challenge", 2))
    ]
