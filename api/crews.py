"""Where the workers of a run live: processes of this machine, or actors of a Ray cluster.

Either way a worker is a child process, `dikast judge --shard`, whose standard input is a pipe from
whoever started it: when that one is killed, the pipe ends and the worker stops. Ray is loaded only
for Ray.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from dikast.engine.errors import ConfigError

Say = Callable[[str], None]


async def open_crew(on: str | None, workers: int, *, say: Say) -> "ProcessCrew | RayCrew":
    """The crew that `--on` names; none: processes of this machine.

    Raises:
        ConfigError: the name is not known, Ray is missing or the cluster does not answer.
    """
    if on is None:
        return ProcessCrew(say)
    scheme, _, address = on.partition("://")
    if scheme != "ray":
        raise ConfigError(f"--on {on}: write ray for this machine, or ray://HOST:PORT")
    return RayCrew(_ray(), address, workers, say)


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        raise ConfigError("--on ray needs the package ray: pip install 'dikast[ray]'") from error


class ProcessCrew:
    """Child processes, one for each shard.

    Args:
        say: told what a worker writes to its standard error.
    """

    def __init__(self, say: Say) -> None:
        self._say = say
        self._running: set[asyncio.subprocess.Process] = set()

    async def judge(self, place: int, words: list[str]) -> int:
        """Run one worker to its end. Source: `fleet.Crew.judge`."""
        child = await asyncio.create_subprocess_exec(
            *command(words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # the terminal's Ctrl-C is for the parent, which passes it on
        )
        self._running.add(child)
        try:
            assert child.stderr is not None
            async for line in child.stderr:
                self._say(f"worker {place}: {plain(line)}")
            return await child.wait()
        finally:
            self._running.discard(child)

    def interrupt(self) -> None:
        """SIGINT to each. Source: `fleet.Crew.interrupt`."""
        for child in self._running:
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGINT)

    async def aclose(self) -> None:
        """Kill what a defect has left running."""
        for child in tuple(self._running):
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()

    def __repr__(self) -> str:
        return f"ProcessCrew({len(self._running)} running)"


class ShardWorker:
    """What a Ray actor does: the same child process, on the actor's machine.

    `judge` and `interrupt` are called from two threads of the actor.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._interrupts = 0

    def judge(self, words: list[str]) -> tuple[int, list[str]]:
        """Run one shard; its exit status and what it complained of."""
        with self._lock:
            if self._interrupts:
                return 130, []
            self._child = subprocess.Popen(
                command(words),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        assert self._child.stderr is not None
        said = [plain(line) for line in self._child.stderr]
        return self._child.wait(), said

    def interrupt(self) -> None:
        """Pass a Ctrl-C on."""
        with self._lock:
            self._interrupts += 1
            if self._child is not None and self._child.poll() is None:
                self._child.send_signal(signal.SIGINT)

    def pid(self) -> int:
        """The process of this actor."""
        return os.getpid()


class RayCrew:
    """Ray actors, each with one shard at a time; an actor that died is replaced.

    Args:
        ray: the library.
        address: `HOST:PORT` of a cluster's client server; empty: the cluster that RAY_ADDRESS
            names, or one made on this machine.
        workers: how many actors.
        say: told what a worker writes to its standard error.

    Raises:
        ConfigError: the cluster does not answer.
    """

    def __init__(self, ray: Any, address: str, workers: int, say: Say) -> None:
        self._ray = ray
        self._say = say
        # Usage is not reported to anybody unless the user has said so.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            ray.init(
                address=f"ray://{address}" if address else None,
                include_dashboard=None if address else False,
                log_to_driver=False,
                logging_level="error",
            )
        except (ConnectionError, RuntimeError, TimeoutError, ValueError) as error:
            raise ConfigError(f"--on ray: the cluster does not answer: {error}") from error
        # Two threads: one waits for the child, one can interrupt it. Actors are not restarted by
        # Ray, because the shard of a dead one goes through `fleet.Fleet`.
        self._make = ray.remote(num_cpus=1, max_concurrency=2, max_restarts=0)(ShardWorker)
        self._actors: list[Any] = [self._make.remote() for _ in range(workers)]

    async def judge(self, place: int, words: list[str]) -> int:
        """Run one shard on actor number `place`. Source: `fleet.Crew.judge`."""
        try:
            code, said = await self._actors[place].judge.remote(words)
        except self._ray.exceptions.RayActorError:
            self._actors[place] = self._make.remote()
            return -signal.SIGKILL
        for line in said:
            self._say(f"worker {place}: {line}")
        return int(code)

    def interrupt(self) -> None:
        """Pass it on through every actor. Source: `fleet.Crew.interrupt`."""
        for actor in self._actors:
            actor.interrupt.remote()

    async def aclose(self) -> None:
        """End the actors and leave the cluster; may be called twice."""
        actors, self._actors = self._actors, []
        for actor in actors:
            self._ray.kill(actor)
        self._ray.shutdown()

    def __repr__(self) -> str:
        return f"RayCrew({len(self._actors)} actors)"


def command(words: list[str]) -> list[str]:
    """The whole command line of a worker."""
    return [sys.executable, "-m", "dikast", *words]


def plain(line: bytes) -> str:
    """A line of a worker's standard error, without the program's name."""
    return line.decode("utf-8", "replace").strip().removeprefix("dikast: ")
