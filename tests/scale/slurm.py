"""Slurm itself, one node on loopback, started by scripts/slurm."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.ports import free_port
from tests.scale.recipes import ROOT

_SCRIPT = str(ROOT / "scripts" / "slurm")
_WAIT_S = 180.0
_PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")


def why_no_slurm() -> str | None:
    """Why Slurm cannot be started here; None when it can."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    missing = [each for each in _PROGRAMS if shutil.which(each, path=path) is None]
    if not missing:
        return None
    return (
        f"no {', '.join(missing)} on this machine "
        "(apt-get install slurmctld slurmd slurm-client munge)"
    )


class Task(NamedTuple):
    """A job, or one task of an array, as Slurm tells of it. `exit` is `STATUS:SIGNAL`."""

    id: int
    state: str
    exit: str
    restarts: int


class Slurm:
    """The cluster. Commands find it, and `dikast`, by their environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        here = str(Path(sys.executable).parent)
        self._env = {
            **os.environ,
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": f"{here}:{os.environ['PATH']}",
        }

    def start(self) -> None:
        """Return when the node is idle."""
        self._script("start", str(self.folder), str(free_port(2)))

    def stop(self) -> None:
        """End jobs and daemons."""
        self._script("stop", str(self.folder))

    def _script(self, *words: str) -> None:
        # Daemons keep what they inherit: a pipe would never come to its end.
        log = self.folder / "script.log"
        with log.open("ab") as file:
            done = subprocess.run([_SCRIPT, *words], stdout=file, stderr=file, check=False)
        if done.returncode:
            pytest.fail(f"scripts/slurm {words[0]}: {log.read_text()}")

    async def run(self, *words: object, cwd: Path) -> str:
        """What a command prints; it has to succeed."""
        child = await asyncio.create_subprocess_exec(
            *map(str, words),
            cwd=cwd,
            env=self._env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await child.communicate()
        assert child.returncode == 0, f"{words}: {err.decode()}"
        return out.decode()

    async def job(self, number: int) -> Task:
        """A job that is no array."""
        (found,) = await self._tasks(number)
        return found[1]

    async def array(self, number: int) -> dict[int, Task]:
        """The tasks of an array that Slurm has told apart so far."""
        return {
            int(index): task
            for index, task in await self._tasks(number)
            if index is not None and index.isdecimal()
        }

    async def _tasks(self, number: int) -> list[tuple[str | None, Task]]:
        text = await self.run("scontrol", "-o", "show", "job", number, cwd=self.folder)
        found: list[tuple[str | None, Task]] = []
        for line in text.splitlines():
            told = dict(re.findall(r"(\w+)=(\S*)", line))
            task = Task(
                int(told["JobId"]), told["JobState"], told["ExitCode"], int(told["Restarts"])
            )
            found.append((told.get("ArrayTaskId"), task))
        return found

    async def process_of(self, job: int) -> int:
        """The process that Slurm started for a job."""
        text = await self.run("scontrol", "listpids", job, cwd=self.folder)
        return int(text.splitlines()[1].split()[0])

    async def ended(self, number: int) -> Task:
        """A job that is no array, when it has ended."""

        async def holds() -> bool:
            return (await self.job(number)).state not in {"PENDING", "RUNNING", "COMPLETING"}

        await until(holds, f"job {number} ends")
        return await self.job(number)


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait for something that nothing announces."""
    try:
        async with asyncio.timeout(_WAIT_S):
            while not await holds():  # noqa: ASYNC110
                await asyncio.sleep(0.2)
    except TimeoutError:
        pytest.fail(f"did not come about: {what}")
