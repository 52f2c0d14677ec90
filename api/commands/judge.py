"""`dikast judge`: pairs in, outcomes out, a ledger at the end, resumable at any point."""

import argparse
import contextlib
import functools
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from dikast import pacing, settling, shards, status, streams, whole, wiring
from dikast.commands.anchors_lane import AnchorLane, open_lane
from dikast.commands.choices import choices_from
from dikast.config import Settings
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, DikastError, RunStopped, SinkError
from dikast.engine.model import Failed
from dikast.engine.ports import Sink, Source
from dikast.engine.run import Engine, RunReport
from dikast.logging import LogObserver, build_logger
from dikast.outputs import Output, no_manifest
from dikast.preflight import see_extras
from dikast.progress import Progress, drawn, duration, state_of
from dikast.rows import count_rows
from dikast.shards import Job
from dikast.signals import on_end_of_stdin, on_signals
from dikast.sinks import OutputScan
from dikast.streams import TopicDone
from dikast.whole import WholeOutput

_MESSAGE_SHOWN = 200  # characters of a failure's message on the terminal


async def run(args: argparse.Namespace) -> int:
    """Judge, write, give account; the exit status says how it went."""
    if args.processes is not None or args.on is not None:
        from dikast.fleet import run as judge_with_workers

        return await judge_with_workers(args)
    if args.shard is not None:
        from dikast.shard_job import run as judge_shard

        return await judge_shard(args, judge_into)
    if not args.pairs or args.output is None:
        raise ConfigError("name the pairs to judge, and the output with -o OUT.jsonl")
    if args.output == "-" and args.json:
        raise ConfigError("-o - and --json both want standard output; choose one of them")
    return await judge_into(args, settling.settle(choices_from(args)))


async def judge_into(args: argparse.Namespace, settings: Settings, job: Job | None = None) -> int:
    """One run on one output.

    Args:
        args: the command line.
        settings: who judges, and how.
        job: a shard to judge instead of the named pairs.
    """
    await _look_first(args, settings, job)
    clock = SystemClock()
    lane = open_lane(args, settings, clock)
    output = Output(args.output, argv=args.argv, clock=clock)
    source = wiring.open_source(args.pairs, settings.input) if job is None else job.source
    progress = Progress(clock)
    held = WholeOutput()
    log = LogObserver(build_logger(args.log_level, args.log_format), args.log_level)
    # An answer of an earlier judge must not be corrected by what today's anchors say.
    named = settings.run.store is not None
    keeps = lane is None or not lane.corrects or named
    store = wiring.store_path(settings, output.kept_beside) if keeps else None
    truth = await wiring.configured_truth(settings)
    engine = wiring.build_engine(
        settings,
        store=store,
        observers=(progress, log, held),
        clock=clock,
        truth=truth,
        wrap=None if lane is None else lane.wrap,
        counted=True,
    )
    if job is not None:
        shards.check_spec(job.plan, engine.spec, engine.spec_tree)
    # Signals are caught from here on: what is opened below is also closed in order.
    async with engine, contextlib.AsyncExitStack() as stack:
        stack.enter_context(on_signals(_on_signal(args, engine, lane, settings.run.drain_s)))
        if args.with_parent:
            gone = functools.partial(engine.cancel, "the process that started this one is gone")
            stack.enter_context(on_end_of_stdin(gone))
        if args.fresh and (kept := output.set_aside()) is not None:
            _say(args, f"kept the old output as {kept}")
        resume = await _resume(args, output, source, engine, held)
        progress.already = 0 if resume is None else resume.done
        _share_budget(engine, output, settings)
        progress.total = (
            count_rows(args.pairs, settings.run.limit, settings.input.split)
            if job is None
            else job.shard.rows
        )
        progress.lag = streams.lag_of(source)
        sink = wiring.open_sinks(
            output,
            args.sink,
            resume=resume if isinstance(resume, OutputScan) else None,
            source=source,
            clock=clock,
            on_drop=functools.partial(_say_drop, args),
            tell=_tell_people,
        )
        stack.push_async_exit(functools.partial(_close, sink))
        report = await _account(
            args, settings, engine, output, source, sink, resume, progress, lane
        )
    code = status.of_report(report)
    _tell(
        args,
        output,
        report,
        code,
        simulated=progress.simulated or engine.simulated,
        first_failures=progress.first_failures.values(),
        anchors=None if lane is None else lane.state(),
        held=held,
        total_binds=engine.total_binds,
    )
    return code


async def _look_first(args: argparse.Namespace, settings: Settings, job: Job | None) -> None:
    """Whether the run can work at all, before it makes a file or a call."""
    wiring.check_output_name(args.output)
    if settings.run.budget_total_usd is not None:
        option = "--budget-total-usd"
        if args.output == "-" or streams.is_kafka(args.output):
            raise no_manifest(args.output, option)
        if job is not None:
            raise ConfigError(
                f"{option} does not go with --shard, whose outputs are many; cap each shard with "
                "--budget-usd, or judge with --processes"
            )
    shared = settings.pacing.shared is not None
    see_extras(args.pairs, (args.output, *args.sink), shared_limit=shared)
    await pacing.check_shared(settings.pacing)
    if job is None:
        await wiring.look_at(args.pairs, settings.input)


async def _resume(
    args: argparse.Namespace, output: Output, source: Source, engine: Engine, held: WholeOutput
) -> OutputScan | TopicDone | None:
    """What earlier runs have left in the output, told in a line."""
    stream = streams.is_stream(source)
    resume: OutputScan | TopicDone | None
    if streams.is_kafka(output.where):
        resume = await streams.done_in(output.where, source, engine.spec)
    else:
        resume = output.resume(engine.spec, engine.spec_tree, keep_failed=stream)
    if resume is not None:
        _say(args, f"resuming {output.where}: {_resumed(resume, stream=stream)}")
    held.begin(resume, known=not (stream and streams.is_kafka(output.where)))
    return resume


def _share_budget(engine: Engine, output: Output, settings: Settings) -> None:
    """Count the run's spending with that of the earlier runs on the output.

    Raises:
        ConfigError: there is a total budget, and nobody knows what they have spent.
    """
    if output.path is None:
        return
    total_usd = settings.run.budget_total_usd
    before_usd = 0.0 if total_usd is None else output.spent_before_usd()

    def note(usd: float) -> None:
        try:
            output.note_spending(usd)
        except SinkError as error:
            raise RunStopped("sink", str(error)) from error

    engine.share_budget(note, total_usd=total_usd, before_usd=before_usd)


async def _account(
    args: argparse.Namespace,
    settings: Settings,
    engine: Engine,
    output: Output,
    source: Source,
    sink: Sink,
    resume: OutputScan | TopicDone | None,
    progress: Progress,
    lane: AnchorLane | None,
) -> RunReport:
    """Run between the two writings of the manifest."""
    output.begin(
        engine.spec,
        engine.spec_tree,
        engine.strategy_name,
        inputs=args.pairs,
        seed=settings.run.seed,
        simulated=engine.simulated,
    )
    try:
        if lane is not None:
            await _judge_anchors(args, settings, lane, engine, output)
        async with drawn(progress, state_of(engine), quiet=args.quiet):
            report = await engine.run(
                source,
                sink,
                is_done=resume.is_done if resume is not None else None,
                limit=settings.run.limit,
                ordered=args.ordered,
            )
        # The output has to be whole before the manifest says so.
        await sink.flush()
    except RunStopped as stop:
        spent_usd = engine.snapshot().ledger.spent_usd
        output.end_stopped(stop.reason, stop.message, spent_usd=spent_usd)
        raise
    except DikastError as error:
        output.end_with_error(str(error), spent_usd=engine.snapshot().ledger.spent_usd)
        raise
    try:
        output.end(
            report,
            simulated=progress.simulated or engine.simulated,
            notes=[
                f"key {each.name}: {each.note}" for each in engine.snapshot().pacers if each.note
            ],
        )
    except SinkError as error:
        # The ledger is still told: on a full disk it is the only account of the run.
        _say(args, str(error))
    return report


async def _judge_anchors(
    args: argparse.Namespace,
    settings: Settings,
    lane: AnchorLane,
    engine: Engine,
    output: Output,
) -> None:
    """The anchors come first: they may stop the run, and they say how scores are corrected."""
    try:
        said = await lane.judge(lambda theirs: _share_budget(theirs, output, settings))
    finally:
        engine.charge(lane.spent_usd)
    output.note_anchors(lane.state())
    for line in said:
        _say(args, line)
    lane.write_run(output.path)
    lane.pass_gate()


async def _close(sink: Sink, kind: type[BaseException] | None, *_: object) -> None:
    """Close the sink; an error that it has told before is not told twice."""
    with contextlib.suppress(SinkError) if kind is not None else contextlib.nullcontext():
        await sink.aclose()


def _on_signal(
    args: argparse.Namespace, engine: Engine, lane: AnchorLane | None, drain_s: float
) -> Callable[[int, signal.Signals], None]:
    """The first signal drains, the second cancels."""

    def handle(count: int, which: signal.Signals) -> None:
        if count == 1:
            _say(
                args,
                f"{which.name}: taking no further pair; up to {drain_s:g} s for those in flight "
                "(again to cancel them)",
            )
            engine.drain(f"interrupted by {which.name}")
            if lane is not None:
                lane.stop(count, which)
        else:
            _say(args, f"{which.name}: cancelling what is in flight")
            engine.cancel(f"interrupted by {which.name}")
            if lane is not None:
                lane.stop(count, which)

    return handle


def _resumed(scan: OutputScan | TopicDone, *, stream: bool) -> str:
    text = f"{scan.done:,} pairs are done"
    if scan.retry and stream:
        text += (
            f", {scan.retry:,} failed ones stay in it: the topic does not hand out again what this "
            "group has committed; another ?group=NAME reads it anew and judges only those"
        )
    elif scan.retry:
        text += f", {scan.retry:,} failed ones are tried again"
    if isinstance(scan, OutputScan) and scan.torn_bytes:
        text += ", a torn last line is cut off"
    return text


def _say_drop(args: argparse.Namespace, sink: Sink, error: SinkError) -> None:
    name = getattr(sink, "name", type(sink).__name__)
    _say(args, f"the optional sink {name} gets nothing more: {error}")


def _say(args: argparse.Namespace, message: str) -> None:
    if not args.quiet:
        print(f"dikast: {message}", file=sys.stderr, flush=True)


def _tell_people(message: str) -> None:
    """What must not go by unseen, also with --quiet."""
    print(f"dikast: {message}", file=sys.stderr, flush=True)


def _tell(
    args: argparse.Namespace,
    output: Output,
    report: RunReport,
    code: int,
    *,
    simulated: bool,
    first_failures: Iterable[Failed],
    anchors: Mapping[str, Any] | None,
    held: WholeOutput,
    total_binds: bool,
) -> None:
    """The end of the story: the ledger for people, the summary for machines."""
    whole_now, spent = held.held(report.ledger), output.spent(report.ledger.spent_usd)
    if not args.quiet:
        for line in (*report_lines(report, output.where, simulated=simulated), *output.notes):
            print(line, file=sys.stderr)
        if held.resumed and whole_now is not None:
            print("\n".join(whole.lines(whole_now, spent)), file=sys.stderr)
        for failed in first_failures:
            print(f"  first {failed.reason}: {_one_line(failed)}", file=sys.stderr)
    if report.stopped is not None and code not in (status.OK, status.FAILURES):
        hint = "" if report.stopped == "auth" else "; the same command resumes"
        if report.stopped == "budget":
            hint = _after_budget(hint, total_binds=total_binds, granted=args.with_parent)
        _say_stop((report.message or report.stopped) + hint)
    if args.json:
        found = summary(report, output, code, simulated=simulated)
        found["whole_output"] = whole.machine(whole_now, spent)
        if anchors is not None:
            found["anchors"] = anchors
        print(msgspec.json.encode(found).decode())


def _after_budget(hint: str, *, total_binds: bool, granted: bool) -> str:
    """What to do when the money is used up."""
    if granted:  # a worker of several: who granted it says what the whole run has
        return ", as granted to this shard"
    if total_binds:
        return "; a larger --budget-total-usd goes on"
    return hint + ", with the whole budget again"


def _one_line(failed: Failed) -> str:
    message = " ".join(failed.message.split())
    if not message.startswith(f"{failed.id}:"):  # a row without an id has its place for one
        message = f"{failed.id}: {message}"
    return message if len(message) <= _MESSAGE_SHOWN else message[: _MESSAGE_SHOWN - 3] + "..."


def _say_stop(message: str) -> None:
    print(f"dikast: stopped: {message}", file=sys.stderr, flush=True)


def report_lines(report: RunReport, where: str, *, simulated: bool) -> list[str]:
    """The ledger with what it took, for a terminal."""
    ledger = report.ledger
    lines = [f"ledger of {where}{' (simulated judges)' if simulated else ''}"]
    lines += [f"  {line}" for line in ledger.lines()]
    lines.append(
        f"  {ledger.calls:,} calls ({ledger.stored_calls:,} from the store, "
        f"{report.requests_sent:,} requests sent), "
        f"{ledger.usage.input:,} tokens in, {ledger.usage.output:,} out, "
        f"${ledger.spent_usd:,.4f} spent, {duration(report.duration_s)}"
    )
    return lines


def summary(report: RunReport, output: Output, code: int, *, simulated: bool) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "status": code,
        "complete": report.complete,
        "stopped": report.stopped,
        "message": report.message,
        "output": output.where,
        "spec": report.spec,
        "strategy": report.strategy,
        "simulated": simulated,
        # Zeros are said, too: a reader of one summary must not have to know the defaults.
        "ledger": {
            name: msgspec.to_builtins(getattr(report.ledger, name))
            for name in report.ledger.__struct_fields__
        },
        "adds_up": report.ledger.adds_up(),
        "requests_sent": report.requests_sent,
        "duration_s": round(report.duration_s, 3),
    }
