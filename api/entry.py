"""The first module of the `dikast` command: signals are taken before anything heavy is loaded.

Python spends a third of a second on imports before a command begins. A Ctrl-C in that time would
leave as a traceback, and a SIGTERM without a word, so both end the process here: nothing is open
yet that would have to be closed. Once the command's loop runs, `dikast.signals` has them.
"""

import os
import signal
from types import FrameType

INTERRUPTED = 130


def main() -> int:
    """Run the command line of this process; the exit status, see `dikast --help`."""
    for each in (signal.SIGINT, signal.SIGTERM):
        # Who started the process may have it ignore a signal, as `&` in a shell script does.
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _leave)
    # Not at the top: the handlers above are there to cover this import, too.
    from dikast.cli import main as run

    return run()


def _leave(number: int, _frame: FrameType | None) -> None:
    """End at once. Raised as an exception it could land in a callback of the import system, where
    Python prints it and goes on."""
    if number == signal.SIGTERM:
        # Whoever sent it is not looking at the terminal, but at a log.
        os.write(2, b"dikast: stopped: interrupted by SIGTERM\n")
    os._exit(INTERRUPTED)
