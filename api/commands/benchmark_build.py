"""`dikast benchmark build`: chat logs in, a benchmark out, every stage's result in one folder.

Clean (format, personal data, near duplicates), ask (fault and topic, answers of a strong and a
weak model, comparison in both orders), let people look, write. Each call goes through the call
store in the folder, so the same command resumes after a kill and a rerun gives the same files.
Composes; computes nothing.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from dikast import settling, status, wiring
from dikast.analysis.benchmark_account import (
    Account,
    FigureBook,
    Rate,
    Stage,
    challenge_rates,
)
from dikast.analysis.benchmark_file import benchmark_json
from dikast.analysis.benchmark_format import TOPICS, Dialogue
from dikast.analysis.benchmark_review import KEEP_NOTE, Decisions, Draw, filter_errors
from dikast.commands.benchmark_files import STORE, Artefact, make_private, read_dialogues
from dikast.commands.benchmark_stages import (
    ANSWERS,
    CHALLENGE,
    DUPLICATES,
    SCREEN,
    TURNED_AWAY,
    Refusals,
    after_answers,
    after_challenge,
    after_screen,
    ask_stage,
    calls_of,
    clean,
)
from dikast.commands.benchmark_tables import build_tables, plan_table
from dikast.commands.preferences_files import make_folder
from dikast.commands.reporting import drawn
from dikast.commands.rounds import Rounds, open_rounds
from dikast.config import Settings
from dikast.engine.chat import asked
from dikast.engine.errors import ConfigError
from dikast.engine.files import check_output
from dikast.engine.model import Judge, Pair
from dikast.strategies import Pairwise, load_template, swap
from dikast.strategies.benchmark_answers import Answers
from dikast.strategies.benchmark_screen import Screen
from dikast.strategies.text import mostly_chinese
from dikast.tables import As

REJECTED, REVIEW, BENCHMARK = "rejected.jsonl", "review.jsonl", "benchmark.json"
PAIRS, STATISTICS = "pairs.jsonl", "statistics.json"
_WRITTEN = (SCREEN, ANSWERS, CHALLENGE, TURNED_AWAY, REVIEW, PAIRS, BENCHMARK, STATISTICS)
_TEMPLATES = ("pairwise-en", "pairwise-zh")


class Cast:
    """Who screens, answers and compares.

    Args:
        args: of the command line.

    Raises:
        InputError: the configuration cannot be read.
        ConfigError: it is wrong, somebody is missing, or a model is both strong and weak.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        for name, given in (("judge", args.judge), ("strong", args.strong), ("weak", args.weak)):
            if not given:
                raise ConfigError(f"--{name}: say which model that is, such as openai:gpt-4o-mini")
        screener = args.screener or args.judge
        named = list(dict.fromkeys([args.judge, screener, *args.strong, *args.weak]))
        choices = settling.Choices(
            config=args.config,
            judges=tuple(named),
            strategy="committee" if len(named) > 1 else None,
            seed=args.seed,
            budget_usd=args.budget_usd,
            workers=args.workers,
            store=args.store,
            no_store=True if args.no_store else None,
        )
        self.settings: Settings = settling.settle(choices)
        judges = wiring.judges_in(self.settings)
        if len(judges) < len(named):
            raise ConfigError("two of the models go by the same name; name each in the same way")
        # A judge named PROVIDER:MODEL goes by its model's name from here on; the order is kept.
        found = dict(zip(named, judges.values(), strict=True))
        for judge in found.values():
            if judge.by_pair:
                raise ConfigError("recorded answers (replay) cannot answer new prompts")
        self.judge: Judge = found[args.judge]
        self.screener: Judge = found[screener]
        self.strong = [found[name] for name in dict.fromkeys(args.strong)]
        self.weak = [found[name] for name in dict.fromkeys(args.weak)]
        both = {each.name for each in self.strong} & {each.name for each in self.weak}
        if both:
            raise ConfigError(f"--strong and --weak: {min(both)} cannot be both")
        self.seed = self.settings.run.seed

    def names(self) -> dict[str, Any]:
        """For the statistics."""
        return {
            "judge": self.judge.name,
            "screener": self.screener.name,
            "strong": [each.name for each in self.strong],
            "weak": [each.name for each in self.weak],
            "seed": self.seed,
        }


async def run(args: argparse.Namespace) -> int:
    """Build a benchmark; see `dikast benchmark build --help`.

    Returns:
        0 when every dialogue was kept or turned away for good, 1 when calls failed.

    Raises:
        InputError: a log, the labels or the configuration cannot be read.
        ConfigError: the configuration cannot work.
        SinkError: a file cannot be written.
        RunStopped: budget, quota, key, store or a signal; the same command resumes.
    """
    cast = Cast(args)
    as_: As = "json" if args.json else "md" if args.md else "terminal"
    account = Account()
    if args.dry_run:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            with Artefact(folder / REJECTED) as rejected:
                clean(args, folder, account, Refusals(rejected), cast.seed)
        calls = calls_of(account.stages)
        print(drawn([plan_table(account, calls)], as_, {"calls": calls}), end="")
        return status.OK
    decisions = None if args.labels is None else Decisions(args.labels)
    folder = Path(args.output)
    make_folder(folder, "the build")
    for name in _WRITTEN:
        check_output(folder / name)
    with Artefact(folder / REJECTED) as rejected:
        refusals = Refusals(rejected)
        clean(args, folder, account, refusals, cast.seed)
        if not cast.settings.run.no_store and cast.settings.run.store is None:
            make_private(folder / STORE)
        async with open_rounds(cast.settings, folder / STORE, quiet=args.quiet) as rounds:
            await _ask(cast, folder, account, refusals, rounds)
        queue = _queue(args, folder, cast.seed)
        people = account.stage("people")
        _finish(folder, people, refusals, decisions)
    report = _report(folder, account, cast, args, decisions, queue)
    with Artefact(folder / STATISTICS) as statistics:
        plain = msgspec.json.encode(report)
        statistics.write_bytes(msgspec.json.format(plain, indent=2) + b"\n")
    told = {**report, "run": rounds.spent}
    print(drawn(build_tables(told, folder), as_, told), end="")
    return status.FAILURES if account.failed else status.OK


async def _ask(
    cast: Cast, folder: Path, account: Account, refusals: Refusals, rounds: Rounds
) -> None:
    """The three stages that ask models."""
    templates = [load_template(name) for name in _TEMPLATES]
    pairwise = Pairwise(cast.judge, templates, seed=cast.seed)
    plan = (
        ("screen", DUPLICATES, SCREEN, Screen(cast.screener, seed=cast.seed), after_screen),
        (
            "answers",
            SCREEN,
            ANSWERS,
            Answers(cast.strong, cast.weak, seed=cast.seed),
            after_answers(cast.seed),
        ),
        ("challenge", ANSWERS, CHALLENGE, swap(pairwise), after_challenge),
    )
    for name, given, into, strategy, read in plan:
        total = account.stages[-1].kept
        with ExitStack() as stack:
            artefact = stack.enter_context(Artefact(folder / into))
            last = into == CHALLENGE
            away = stack.enter_context(Artefact(folder / TURNED_AWAY)) if last else None
            await ask_stage(
                rounds,
                strategy,
                account.stage(name),
                refusals,
                given=folder / given,
                into=artefact,
                read=read,
                away=away,
                total=total,
            )


def _queue(args: argparse.Namespace, folder: Path, seed: int) -> dict[str, int]:
    """Write the review queue; how many are asked about in each way."""
    kept, away = Draw(seed, args.review_kept), Draw(seed, args.review_rejected)
    for dialogue in read_dialogues(folder / CHALLENGE):
        kept.offer(f"kept/{dialogue.topic}", dialogue)
    for dialogue in read_dialogues(folder / TURNED_AWAY):
        away.offer(f"rejected/{dialogue.turned_away}", dialogue)
    counts: dict[str, int] = {}
    with Artefact(folder / REVIEW) as queue:
        for item in (*kept.items("keep or drop", KEEP_NOTE), *away.items("which is better")):
            counts[item.ask] = counts.get(item.ask, 0) + 1
            queue.write(item)
    return counts


def _finish(folder: Path, people: Stage, refusals: Refusals, decisions: Decisions | None) -> None:
    """The benchmark: what the stages kept and people did not drop, in SenseBench's order."""
    names: dict[str, set[str]] = {topic: set() for topic in TOPICS}
    with Artefact(folder / PAIRS) as pairs:
        for dialogue in read_dialogues(folder / CHALLENGE):
            if decisions is not None and decisions.dropped(dialogue.id):
                refusals.note(people, dialogue, "dropped", None)
                continue
            people.kept += 1
            names[dialogue.topic or ""].add(dialogue.id)
            pairs.write(_pair(dialogue))
    with Artefact(folder / BENCHMARK) as benchmark:
        for piece in benchmark_json(
            (dialogue.messages, topic) for topic, dialogue in _sorted(folder, names)
        ):
            benchmark.write_bytes(piece)


def _sorted(folder: Path, names: dict[str, set[str]]) -> Iterator[tuple[str, Dialogue]]:
    """Topic by topic; the artefact is read once for each, so that it need not fit in memory."""
    for topic, chosen in names.items():
        for dialogue in read_dialogues(folder / CHALLENGE) if chosen else ():
            if dialogue.id in chosen:
                yield topic, dialogue


def _pair(dialogue: Dialogue) -> Pair:
    question, messages = asked(dialogue.messages)
    return Pair(
        id=dialogue.id,
        question=question,
        messages=messages,
        response_a=dialogue.response_a or "",
        response_b=dialogue.response_b or "",
        category=dialogue.topic,
        model_a=dialogue.model_a,
        model_b=dialogue.model_b,
        # No label: what one judge found is no truth about the pair.
        meta={"strong": dialogue.strong},
    )


def _report(
    folder: Path,
    account: Account,
    cast: Cast,
    args: argparse.Namespace,
    decisions: Decisions | None,
    queue: dict[str, int],
) -> dict[str, Any]:
    """The statistics: the same for the same input, whatever came from the store."""
    book = FigureBook()
    asked_about = dropped = 0
    kept = {dialogue.id for dialogue in _kept(folder)}
    for dialogue in read_dialogues(folder / CHALLENGE):
        said = None if decisions is None else decisions.dropped(dialogue.id)
        asked_about += said is not None
        dropped += said is True
        if dialogue.id in kept:
            text = "\n".join(turn.content for turn in dialogue.messages)
            book.add(dialogue, chinese=mostly_chinese(text))
    challenge = next(stage for stage in account.stages if stage.name == "challenge")
    review: dict[str, Any] = {"queue": queue}
    if decisions is not None:
        away = read_dialogues(folder / TURNED_AWAY)
        errors: list[Rate] = filter_errors(
            decisions, ((each.turned_away or "", each) for each in away)
        )
        review |= {
            "decided": asked_about,
            "dropped": dropped,
            "strong_better_among_rejected": errors,
        }
    plain = {
        "format": 1,
        "models": cast.names(),
        "options": {
            "similarity": args.similarity,
            "max_chars": args.max_chars,
            "personal": args.personal,
            "limit": args.limit,
        },
        "rows": account.rows,
        "stages": [stage.as_builtins() for stage in account.stages],
        "kept": account.stages[-1].kept,
        "rejected": account.rejected,
        "adds_up": account.adds_up(),
        "benchmark": book.figures(),
        "challenge": challenge_rates({"kept": challenge.kept, **challenge.rejected}),
        "review": review,
    }
    found: dict[str, Any] = msgspec.to_builtins(plain)
    return found


def _kept(folder: Path) -> Iterator[Pair]:
    decode = msgspec.json.Decoder(Pair).decode
    with open(folder / PAIRS, "rb") as file:
        for line in file:
            yield decode(line)
