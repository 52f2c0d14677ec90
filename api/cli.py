"""The command line: words to arguments, errors to one sentence, results to an exit status.

The only place that starts an event loop. Imports nothing heavy before a command is chosen, so
that `dikast --help` answers at once. What a command does is in `dikast.commands`.
"""

import argparse
import asyncio
import contextlib
import difflib
import errno
import gc
import io
import os
import sys
from collections.abc import Coroutine, Sequence
from importlib import import_module
from typing import Any, NoReturn

from dikast.cli_audit import add_audit
from dikast.cli_reports import add_reports
from dikast.commands import sesse_args
from dikast.commands.benchmark_words import add_benchmark
from dikast.commands.gate_args import add_anchor_lane, add_anchors, add_injection
from dikast.commands.preferences_words import add_preferences
from dikast.commands.rank_args import add_rank

# As in `dikast.status`, which is not imported before a command is chosen.
_OK, _BAD_INPUT, _STOPPED, _INTERRUPTED, _BROKEN_PIPE = 0, 2, 3, 130, 141
_STDOUT_LOST = (errno.EBADF, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)

_EPILOG = """\
exit status:
  0    all is well; of a run: every pair was judged (one without a readable verdict is, too)
  1    finished, and some pairs failed; the next run on the same output tries them again
  2    the input, the configuration or the key is wrong
  3    stopped by budget, quota, a dead endpoint, a full disk or an output that another run
       is writing; the same command resumes
  4    a gate failed: the anchors have moved, planted instructions turn the judge, or people
       agree with it less than asked for
  130  interrupted; the same command resumes
  141  the reader of standard output went away
"""


class _Parser(argparse.ArgumentParser):
    """Complains in one sentence, like everything else here."""

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]  # it has overloads
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """As in argparse, but a command names its own unknown words, not its parent."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._nearest(unknown)}")
        return found, unknown

    def _nearest(self, unknown: list[str]) -> str:
        for word in unknown:
            option = word.partition("=")[0]
            if near := difflib.get_close_matches(option, self._option_string_actions, 1):
                return f"; did you mean {near[0]}?"
        return ""

    def error(self, message: str) -> NoReturn:
        self.exit(_BAD_INPUT, f"dikast: error: {message}; see {self.prog} --help\n")


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = _Parser(
        prog="dikast",
        description="Put LLM judges to work on pairs of answers: fast, debiased, nothing lost.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--debug", action="store_true", help="show the traceback of an error (or set DIKAST_DEBUG)"
    )
    parser.set_defaults(when_interrupted="no file is half written; run the same command again")
    _add_judge(commands, shared)
    _add_demo(commands, shared)
    _add_check(commands, shared)
    _add_simulate(commands, shared)
    _add_convert(commands, shared)
    _add_calibrate(commands, shared)
    _add_weights(commands, shared)
    sesse_args.add(commands, _command, shared, _Parser)
    add_preferences(commands, shared, _command)
    add_benchmark(commands, shared, _command)
    add_reports(commands, shared, _command)
    add_audit(_command(commands, "audit", shared, "set people's labels beside the judge's"), shared)
    add_anchors(lambda name, help_: _command(commands, name, shared, help_), _add_choices, _Parser)
    add_rank(_command(commands, "rank", shared, "rank models by their battles, with doubt"))
    _add_shard(commands, shared)
    _add_merge(commands, shared)
    return parser


def _command(commands: Any, name: str, shared: Any, help_: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name,
        parents=[shared],
        help=help_,
        description=help_[0].upper() + help_[1:] + ".",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return made


def _add_choices(command: argparse.ArgumentParser) -> None:
    """What `judge` and `check` have in common: who judges, and how."""
    command.add_argument("--config", metavar="FILE", help="configuration in TOML")
    command.add_argument(
        "--judge",
        action="append",
        default=[],
        metavar="PROVIDER:MODEL",
        help="openai:MODEL, http://HOST/v1:MODEL, simulated:careful, or the name of a configured "
        "judge; repeated for a committee or a cascade",
    )
    command.add_argument(
        "--strategy",
        metavar="NAME",
        help="single, swap (default), score, committee or cascade; others in a file",
    )
    command.add_argument("--template", metavar="NAME_OR_FILE", help="prompt to ask with")
    command.add_argument("--seed", type=int, metavar="N", help="decides orders; default 0")
    command.add_argument(
        "--budget-usd",
        type=float,
        metavar="X",
        help="never spend more than this many US dollars in this run; a resumed run counts anew",
    )
    command.add_argument("--workers", type=int, metavar="N", help="pairs judged at the same time")


def _add_judge(commands: Any, shared: Any) -> None:
    command = _command(commands, "judge", shared, "judge pairs and write one outcome a line")
    command.set_defaults(when_interrupted="the same command resumes")
    command.add_argument(
        "pairs", nargs="*", metavar="PAIRS", help="files, folders, patterns, addresses; - is stdin"
    )
    command.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="output, resumed: OUT.jsonl or OUT.parquet; - is stdout",
    )
    _add_choices(command)
    command.add_argument(
        "--budget-total-usd",
        type=float,
        metavar="X",
        help="never spend more than this in all runs on this output, counted from its manifest",
    )
    _add_workers(command)
    _add_input(command)
    command.add_argument(
        "--sink", action="append", default=[], metavar="URL", help="a further sink; may be repeated"
    )
    command.add_argument(
        "--fresh", action="store_true", help="start anew; the old output is kept as OUT.old"
    )
    command.add_argument("--store", metavar="PATH", help="call store to use")
    command.add_argument("--no-store", action="store_true", help="keep no completions")
    command.add_argument("--ordered", action="store_true", help="write in input order")
    add_anchor_lane(command)
    command.add_argument("--json", action="store_true", help="print a summary as JSON on stdout")
    command.add_argument("--quiet", action="store_true", help="no progress and no ledger on stderr")
    command.add_argument(
        "--log-level", default="warning", choices=("debug", "info", "warning", "error")
    )
    command.add_argument("--log-format", default="console", choices=("console", "json"))


def _add_workers(command: argparse.ArgumentParser) -> None:
    """How many workers there are, and which part of the work this one does."""
    command.add_argument(
        "--processes", type=int, metavar="N", help="judge in N processes of this machine"
    )
    command.add_argument(
        "--on", metavar="ray[://HOST:PORT]", help="judge on the machines of a Ray cluster"
    )
    command.add_argument(
        "--shard",
        metavar="PLAN",
        help="judge one shard: of a plan (with --index), or I/N of PAIRS into the folder OUT",
    )
    command.add_argument("--index", type=int, metavar="I", help="number of the shard, from 0")
    command.add_argument(
        "--one-of",
        type=int,
        metavar="N",
        help="N workers use the same key: keep to a part of its limits, unless they are shared",
    )
    command.add_argument("--with-parent", action="store_true", help=argparse.SUPPRESS)


def _add_input(command: argparse.ArgumentParser) -> None:
    """What `judge` and `convert` have in common: how the input is read."""
    command.add_argument("--format", metavar="F", help="input format; recognised by default")
    command.add_argument(
        "--columns", metavar="FIELD=COLUMN,...", help="which column stands for which field"
    )
    command.add_argument("--split", metavar="NAME", help="which split of a dataset: train, test")
    command.add_argument("--limit", type=int, metavar="N", help="read at most this many rows")


def _add_demo(commands: Any, shared: Any) -> None:
    command = _command(
        commands, "demo", shared, "judge the shipped pairs with simulated judges over real HTTP"
    )
    command.set_defaults(when_interrupted="the same command begins anew")
    command.add_argument("-o", "--output", default="dikast-demo", metavar="DIR", help="folder")
    command.add_argument("--seed", type=int, default=7, metavar="N", help="seed of the simulation")
    command.add_argument("--json", action="store_true", help="print a summary as JSON on stdout")


def _add_check(commands: Any, shared: Any) -> None:
    command = _command(
        commands, "check", shared, "check the configuration, the keys and the endpoints"
    )
    command.set_defaults(when_interrupted="nothing of it is kept; run the same command again")
    command.add_argument(
        "pairs", nargs="*", metavar="PAIRS", help="inputs of the run to come: can they be read"
    )
    command.add_argument(
        "-o", "--output", metavar="OUT", help="output of the run to come: can it be written"
    )
    command.add_argument(
        "--sink", action="append", default=[], metavar="URL", help="as for judge; may be repeated"
    )
    _add_choices(command)
    _add_input(command)
    command.add_argument("--offline", action="store_true", help="do not contact the endpoints")
    command.add_argument(
        "--rates", metavar="OUT", help="expect calls as in this output, not as assumed"
    )
    add_injection(command)
    command.add_argument("--json", action="store_true", help="print the findings as JSON on stdout")


def _add_simulate(commands: Any, shared: Any) -> None:
    command = _command(
        commands, "simulate", shared, "serve a simulated OpenAI-compatible judge until Ctrl-C"
    )
    command.add_argument("--host", default="127.0.0.1", help="address to listen on")
    command.add_argument("--port", type=int, default=0, help="port; 0 picks a free one")
    command.add_argument(
        "--truth", metavar="PAIRS", help="labelled pairs, whose labels the judge tries to find"
    )
    command.add_argument("--format", metavar="F", help="format of the labelled pairs")
    command.add_argument(
        "--config", metavar="FILE", help="TOML with a [server] table, or with the --provider"
    )
    command.add_argument(
        "--provider", metavar="NAME", help="serve this simulated provider of the configuration"
    )
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="one setting of the server, such as requests_per_min=600; may be repeated",
    )


def _add_convert(commands: Any, shared: Any) -> None:
    command = _command(
        commands, "convert", shared, "convert pairs and outcomes from any kind of file to any other"
    )
    command.add_argument(
        "pairs", nargs="+", metavar="PAIRS", help="files, folders, patterns, addresses; - is stdin"
    )
    command.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="OUT",
        help="JSONL, JSON, CSV, TSV, Parquet, Arrow by its name, DIR/: a dataset; default stdout",
    )
    _add_input(command)


def _add_calibrate(commands: Any, shared: Any) -> None:
    command = _command(
        commands, "calibrate", shared, "map confidences to the chance that people agree"
    )
    command.add_argument("outcomes", nargs="+", metavar="OUT", help="outcomes of dikast judge")
    command.add_argument("-o", "--output", required=True, metavar="CAL.json", help="the map")
    command.add_argument(
        "--labels", metavar="FILE", help="what people say; by default the outcomes' own labels"
    )
    command.add_argument(
        "--method", default="isotonic", choices=("isotonic", "platt"), help="default isotonic"
    )
    command.add_argument(
        "--raw",
        default="auto",
        choices=("auto", "confidence", "margin", "majority_share", "lead"),
        help="the number to map; by default the first of them that most verdicts have",
    )
    command.add_argument("--folds", type=int, default=5, metavar="N", help="default 5")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="decides the folds")
    command.add_argument("--date", metavar="YYYY-MM-DD", help="stored; today by default")
    command.add_argument("--json", action="store_true", help="print the map as JSON on stdout")


def _add_weights(commands: Any, shared: Any) -> None:
    command = _command(
        commands,
        "weights",
        shared,
        "measure the weights of a committee's members on labelled pairs",
    )
    command.add_argument(
        "outcomes", nargs="+", metavar="OUT", help="output of a committee, or one of each judge"
    )
    command.add_argument(
        "-o", "--output", required=True, metavar="WEIGHTS", help="JSON file to write"
    )
    command.add_argument(
        "--labels", metavar="FILE", help="labels of people, instead of those of the pairs"
    )
    command.add_argument("--json", action="store_true", help="print the result as JSON on stdout")


def _add_shard(commands: Any, shared: Any) -> None:
    command = _command(commands, "shard", shared, "cut pairs into shards for several workers")
    command.add_argument("pairs", nargs="+", metavar="PAIRS", help="input files")
    command.add_argument("-o", "--output", required=True, metavar="DIR", help="folder of the plan")
    _add_choices(command)
    command.add_argument("--shards", type=int, metavar="N", help="so many shards of equal size")
    command.add_argument("--rows", type=int, metavar="N", help="shards of so many rows")
    command.add_argument("--format", metavar="F", help="input format; recognised by default")
    command.add_argument("--limit", type=int, metavar="N", help="read at most this many rows")
    command.add_argument("--json", action="store_true", help="print a summary as JSON on stdout")


def _add_merge(commands: Any, shared: Any) -> None:
    command = _command(commands, "merge", shared, "put judged shards together into one output")
    command.add_argument("folder", metavar="DIR", help="folder of the plan and its shards")
    command.add_argument("-o", "--output", required=True, metavar="OUT", help="JSONL output")
    command.add_argument(
        "--partial", action="store_true", help="write what is there although shards are missing"
    )
    command.add_argument(
        "--fresh", action="store_true", help="keep an output that is there as OUT.old"
    )
    command.add_argument("--json", action="store_true", help="print a summary as JSON on stdout")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: words after the program's name; those of the process by default.

    Returns:
        The exit status, see `dikast --help`.
    """
    try:
        return _main(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:  # without a loop that has the signals, in a program that calls this
        return _INTERRUPTED


def _main(words: list[str]) -> int:
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from dikast.process import fill_closed_streams

        fill_closed_streams()
    # Reports and JSON are UTF-8, also where the locale is not: no report is lost over a dash.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(encoding="utf-8")
    parser = build_parser()
    try:
        args = parser.parse_args(words)
    except SystemExit as stop:
        return _said("", stop.code if isinstance(stop.code, int) else _BAD_INPUT)
    if args.version:
        from dikast import __version__

        return _said(f"dikast {__version__}\n", _OK)
    if args.command is None:
        return _said(parser.format_help(), _BAD_INPUT)
    args.argv = words
    debug = args.debug or bool(os.environ.get("DIKAST_DEBUG"))
    return _guarded(args, debug)


def _said(text: str, code: int) -> int:
    """`code`, once `text` and what was printed before it are out."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        _discard_stdout()
        if isinstance(error, BrokenPipeError):
            return _BROKEN_PIPE
        _complain(f"standard output: cannot be written: {error.strerror}")
        return _STOPPED
    return code


def _guarded(args: argparse.Namespace, debug: bool) -> int:
    """Run the chosen command; whatever goes wrong leaves as one sentence and a status."""
    from dikast.arguments import check_arguments
    from dikast.engine.errors import DikastError, ReaderGone
    from dikast.process import raise_open_files
    from dikast.signals import Interrupted

    try:
        raise_open_files()
        check_arguments(args)
        command = import_module(f"dikast.commands.{args.command}")
        return _run_loop(command.run(args))
    except Interrupted as stop:
        _complain(f"interrupted by {stop.which.name}; {args.when_interrupted}", kind="stopped")
        return _INTERRUPTED
    except (BrokenPipeError, ReaderGone):
        _discard_stdout()
        return _BROKEN_PIPE
    except DikastError as error:
        if debug:
            raise
        _complain(str(error))
        return _status_of(error)
    except Exception as error:  # the process boundary: the last place to say one clear sentence
        if debug:
            raise
        # Files are opened where their errors are named, so this is a report on its way out.
        if isinstance(error, OSError) and error.filename is None and error.errno in _STDOUT_LOST:
            _discard_stdout()
            _complain(f"standard output: cannot be written: {error.strerror}; the report is lost")
            return _STOPPED
        _complain(
            f"{type(error).__name__}: {error} (this is a defect; run again with --debug for the "
            "traceback and report it)"
        )
        return _BAD_INPUT


def _discard_stdout() -> None:
    """The interpreter flushes stdout once more at exit; let that go nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, *, kind: str = "error") -> None:
    with contextlib.suppress(OSError, ValueError):
        print(f"dikast: {kind}: {' '.join(message.split())}", file=sys.stderr, flush=True)


def _status_of(error: Exception) -> int:
    from dikast import status
    from dikast.engine.errors import RunStopped, SinkError, StoreError

    if isinstance(error, RunStopped):
        return status.of_stop(error.reason)
    return status.STOPPED if isinstance(error, SinkError | StoreError) else status.BAD_INPUT


def _run_loop(work: Coroutine[Any, Any, int]) -> int:
    from dikast.signals import until_signal

    # The records of a run have no cycles worth looking for: what was imported is frozen, and the
    # collector is asked less often (measured in bench/overhead.py).
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(until_signal(_printed(work)))


async def _printed(work: Coroutine[Any, Any, int]) -> int:
    """The status of `work`, once what it has printed is out: after that a signal ends at once."""
    code = await work
    sys.stdout.flush()
    return code


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:  # not on every platform
        return None
    return uvloop.new_event_loop
