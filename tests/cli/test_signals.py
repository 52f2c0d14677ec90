"""Ctrl-C and SIGTERM at any moment of any command: status 130, no traceback, a sentence."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dikast.cli import build_parser
from dikast.signals import Interrupted, on_signals, until_signal
from tests.cli.tools import DEMO, child

pytestmark = pytest.mark.realtime

BOTH = pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])

# The signal comes at a known moment: when a module is looked for.
_SIGNALLED_AT_IMPORT = """
import os, signal, sys

class Look:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Look())
from dikast.entry import main
sys.exit(main())
"""


def _signalled_at(module: str, which: int, *words: object) -> subprocess.CompletedProcess[str]:
    script = _SIGNALLED_AT_IMPORT.format(module=module, number=int(which))
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@BOTH
@pytest.mark.parametrize("module", ["dikast.cli", "dikast.commands.judge", "msgspec", "uvloop"])
def test_a_signal_while_python_still_imports_ends_without_a_traceback(
    module: str, which: signal.Signals, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"

    done = _signalled_at(module, which, "judge", DEMO, "-o", out, "--judge", "simulated:careful")

    assert done.returncode == 130
    said = "dikast: stopped: interrupted by SIGTERM\n" if which == signal.SIGTERM else ""
    assert (done.stdout, done.stderr) == ("", said)
    assert not out.exists()


@BOTH
def test_a_signal_breaks_off_a_command_that_computes(which: signal.Signals) -> None:
    done = _signalled_at("dikast.analysis.ranking", which, "rank", DEMO)

    assert done.returncode == 130
    assert done.stderr == (
        f"dikast: stopped: interrupted by {which.name}; no file is half written; run the same "
        "command again\n"
    )


@BOTH
def test_a_signal_ends_a_command_that_waits(which: signal.Signals, tmp_path: Path) -> None:
    growing = tmp_path / "out.jsonl"
    growing.write_text(
        '{"kind":"verdict","id":"1","winner":"A","basis":"single","votes":[],'
        '"strategy":"single@1","spec":"s","model_a":"x","model_b":"y"}\n'
    )
    process = child("rank", "--follow", growing)
    assert process.stdout is not None
    assert process.stdout.readline()  # it has drawn, and now waits for news
    process.send_signal(which)

    _, err = process.communicate(timeout=30)

    assert process.returncode == 130
    assert f"stopped: interrupted by {which.name}; " in err
    assert "Traceback" not in err


def test_a_signal_that_was_to_be_ignored_stays_ignored(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "import dikast.cli\n"
        "def late(words=None):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return 7\n"
        "dikast.cli.main = late\n"
        "from dikast.entry import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)

    assert done.returncode == 7


@BOTH
async def test_who_takes_the_signals_for_a_while_gives_them_back(which: signal.Signals) -> None:
    taken: list[int] = []

    async def command() -> int:
        came = asyncio.Event()

        def take(count: int, _: signal.Signals) -> None:
            taken.append(count)
            came.set()

        with on_signals(take):
            os.kill(os.getpid(), which)
            await came.wait()
        os.kill(os.getpid(), which)
        await asyncio.sleep(30)
        return 0

    before = signal.getsignal(which)
    with pytest.raises(Interrupted) as stop:
        # Not its own task as in the command line, so the exception stays in this one.
        await until_signal(command())

    assert stop.value.which == which
    assert taken == [1]
    assert signal.getsignal(which) is before


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("judge p -o o", "resumes"),
        ("sesse build p -o o", "resumes"),
        ("sesse tune l p -o o", "resumes"),
        ("sesse check l p", "resumes"),
        ("sesse baselines l p -o o", "resumes"),
        ("preferences fit p -o o", "resumes"),
        ("preferences evaluate p --profile f", "resumes"),
        ("benchmark build l -o o", "resumes"),
        ("check --injection", "nothing of it is kept"),
        ("anchors run a -o o", "nothing of it is kept"),
        ("merge d -o o", "no file is half written"),
        ("report o", "no file is half written"),
    ],
)
def test_every_command_knows_what_is_kept(words: str, kept: str) -> None:
    assert kept in build_parser().parse_args(words.split()).when_interrupted
