"""The process around a command: its standard streams, and how many files it may open.

Put in order before the event loop starts, so that no pair fails for what the shell left behind.
"""

import contextlib
import os
import sys
from typing import Any

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def fill_closed_streams() -> None:
    """Put `/dev/null` where the shell closed a standard stream (`<&-`, `>&-`).

    Otherwise the next file or socket gets the stream's number, and what is printed lands in it. It
    is opened the wrong way round for stdin and stdout: who uses them is told, and not with silence.
    """
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            got = os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_WRONLY)
            if got != number:
                os.dup2(got, number)
                os.close(got)
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - for good
            setattr(sys, name, stream)


def raise_open_files() -> None:
    """Take as many open files as the system grants; the shell's default is often 1,024 or less."""
    resource = _resource()
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems grant less than the hard limit that they name.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_files_max() -> int | None:
    """How many files this process may have open; None where there is no such limit."""
    resource = _resource()
    if resource is None:
        return None
    soft: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _resource() -> Any:
    try:
        import resource
    except ImportError:  # not on every platform
        return None
    return resource
