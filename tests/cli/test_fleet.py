"""`--processes N` and `--on ray`: one process's outcomes, also when workers are killed."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dikast.providers import simulate_server
from dikast.providers.simulate_server import SimulateServer
from dikast.providers.simulation import SimulatedSettings
from tests.cli.test_kill import CONFIG, WORKERS, write_pairs
from tests.cli.test_shards import digest
from tests.cli.tools import Cli, pair, rows_of, write_rows
from tests.needs import needs_ray

PAIRS = 300


def children_of(parent: int) -> list[int]:
    """Process ids of what `parent` started."""
    with contextlib.suppress(FileNotFoundError):
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        return [int(word) for word in text.split()]
    return []


def is_running(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


@contextlib.asynccontextmanager
async def judged_by(folder: Path, latency_s: float = 0.03) -> AsyncIterator[SimulateServer]:
    """A server that counts, with input and configuration for it."""
    server = await simulate_server.start(SimulatedSettings(latency_s=latency_s))
    try:
        write_pairs(folder / "pairs.jsonl", PAIRS)
        (folder / "dikast.toml").write_text(CONFIG.format(url=server.url, workers=WORKERS))
        yield server
    finally:
        await server.aclose()


async def start(folder: Path, *more: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dikast", "judge", str(folder / "pairs.jsonl")),
        *("-o", str(folder / "out.jsonl"), "--config", str(folder / "dikast.toml"), "--json"),
        *(more or ("--processes", "2")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def requests_reach(server: SimulateServer, count: int) -> None:
    async with asyncio.timeout(30):
        while server.stats().requests < count:  # noqa: ASYNC110  nothing announces it
            await asyncio.sleep(0.002)


async def ended(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    assert b"Traceback" not in err, err.decode()
    return process.returncode, out.decode(), err.decode()


def assert_every_pair_once(folder: Path) -> None:
    ids = Counter(row["id"] for row in rows_of(folder / "out.jsonl"))
    assert ids == Counter(f"k{number}" for number in range(PAIRS))


@pytest.mark.realtime
@pytest.mark.slow
def test_processes_give_the_outcomes_of_one_process(cli: Cli, tmp_path: Path) -> None:
    rows = [pair(number) for number in (*range(20_000), 3)]
    pairs = write_rows(tmp_path / "in.jsonl", rows)
    common = ("--judge", "simulated:careful", "--strategy", "single", "--quiet", "--no-store")
    one = cli("judge", pairs, "-o", tmp_path / "one.jsonl", *common)
    many = cli(
        "judge", pairs, "-o", tmp_path / "many.jsonl", *common, "--processes", 2, "--ordered",
        "--json",
    )  # fmt: skip

    assert one.code == many.code == 1  # the id that is used twice
    assert digest(tmp_path / "one.jsonl") == digest(tmp_path / "many.jsonl")
    assert many.summary["ledger"]["input"] == 20_001
    assert many.summary["ledger"]["failed"] == {"duplicate_id": 1}
    ids = [row["id"] for row in rows_of(tmp_path / "many.jsonl")]
    assert ids[:20_000] == [row["id"] for row in rows[:20_000]]


@pytest.mark.realtime
@pytest.mark.slow
def test_a_finished_shard_that_lost_outcomes_is_judged_on(cli: Cli, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "pairs.jsonl", [pair(number) for number in range(20)])
    words = ("judge", rows, "--judge", "simulated:careful", "--processes", 2)
    out = tmp_path / "out.jsonl"
    assert cli(*words, "-o", out).code == 0
    shard = tmp_path / "out.jsonl.shards" / "shard-00001.jsonl"
    shard.write_text("".join(shard.read_text().splitlines(keepends=True)[:-1]))

    again = cli(*words, "-o", out)

    assert again.code == 0, again.err
    assert len(rows_of(shard)) == 10
    assert len({row["id"] for row in rows_of(out)}) == 20


@pytest.mark.realtime
@pytest.mark.slow
async def test_a_killed_worker_costs_at_most_what_it_had_in_flight(tmp_path: Path) -> None:
    async with judged_by(tmp_path) as server:
        parent = await start(tmp_path)
        await requests_reach(server, 60)
        os.kill(children_of(parent.pid)[0], signal.SIGKILL)
        code, out, err = await ended(parent)
        extra = server.stats().requests - 2 * PAIRS

    assert code == 0, err
    assert "died; giving the shard out again" in err
    assert_every_pair_once(tmp_path)
    assert json.loads(out)["ledger"]["judged"] == PAIRS
    assert 0 <= extra <= 2 * WORKERS


@pytest.mark.realtime
@pytest.mark.slow
async def test_a_killed_parent_takes_its_workers_along_and_the_command_goes_on(
    tmp_path: Path,
) -> None:
    async with judged_by(tmp_path) as server:
        parent = await start(tmp_path)
        await requests_reach(server, 60)
        workers = children_of(parent.pid)
        parent.kill()
        await ended(parent)
        async with asyncio.timeout(10):
            while any(map(is_running, workers)):  # noqa: ASYNC110  nothing announces it
                await asyncio.sleep(0.01)
        paid = server.stats().requests
        code, out, err = await ended(await start(tmp_path, "--processes", "3"))
        extra = server.stats().requests - 2 * PAIRS

    assert len(workers) == 2
    assert paid < 2 * PAIRS, "the workers went on without their parent"
    assert code == 0, err
    assert json.loads(out)["shards"] == 2, "the plan stays when the number of processes changes"
    assert_every_pair_once(tmp_path)
    assert 0 <= extra <= 2 * 2 * WORKERS


@pytest.mark.realtime
@pytest.mark.slow
async def test_ctrl_c_drains_all_workers_and_the_ledger_adds_up(tmp_path: Path) -> None:
    async with judged_by(tmp_path) as server:
        parent = await start(tmp_path)
        await requests_reach(server, 60)
        parent.send_signal(signal.SIGINT)
        code, out, err = await ended(parent)
        stopped = json.loads(out)
        code_after, out_after, _ = await ended(await start(tmp_path))
        requests = server.stats().requests

    assert code == 130, err
    assert stopped["adds_up"] is True
    ledger = stopped["ledger"]
    assert 0 < ledger["judged"] == PAIRS - ledger["not_run"]
    assert not stopped["complete"]
    assert code_after == 0
    assert json.loads(out_after)["ledger"]["judged"] == PAIRS
    assert requests == 2 * PAIRS, "what was in flight was finished, so nothing is paid twice"


@pytest.mark.realtime
@pytest.mark.slow
def test_the_budget_is_one_for_all_processes(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "in.jsonl", [pair(number) for number in range(400)])
    config = tmp_path / "dikast.toml"
    config.write_text(
        '[providers.p]\nkind = "simulated"\n'
        '[judges.j]\nprovider = "p"\nmodel = "careful"\nmax_tokens = 32\n'
        "prices = { input = 10.0, output = 10.0 }\n[run]\nworkers = 8\nbudget_usd = 0.5\n"
    )
    ran = cli(
        "judge", pairs, "-o", tmp_path / "out.jsonl", "--config", config, "--processes", 2, "--json"
    )

    assert ran.code == 3, ran.err
    assert 0.3 < ran.summary["ledger"]["spent_usd"] <= 0.5
    assert ran.summary["ledger"]["not_run"] > 0
    assert ran.summary["adds_up"] is True


def test_an_output_of_one_process_is_not_judged_again(cli: Cli, tmp_path: Path) -> None:
    pairs = write_rows(tmp_path / "in.jsonl", [pair(number) for number in range(4)])
    out = tmp_path / "out.jsonl"
    words = ("judge", pairs, "-o", out, "--judge", "simulated:careful")
    cli(*words)
    refused = cli(*words, "--processes", 2)

    assert refused.code == 2
    assert "was not written by several workers" in refused.err
    assert len(rows_of(out)) == 4


@pytest.mark.realtime
@pytest.mark.slow
async def test_ray_gives_the_outcomes_of_one_process_also_when_an_actor_is_killed(
    tmp_path: Path,
) -> None:
    needs_ray()
    async with judged_by(tmp_path, latency_s=0.1) as server:
        parent = await start(tmp_path, "--on", "ray")
        await requests_reach(server, 60)
        actor = next(
            pid
            for pid in map(int, filter(str.isdecimal, os.listdir("/proc")))
            if is_actor(pid) and is_running(pid)
        )
        os.kill(actor, signal.SIGKILL)
        code, _, err = await ended(parent)
        extra = server.stats().requests - 2 * PAIRS

    assert code == 0, err
    assert "died; giving the shard out again" in err
    assert_every_pair_once(tmp_path)
    assert 0 <= extra <= 2 * WORKERS


def is_actor(pid: int) -> bool:
    """True for a Ray actor that judges a shard."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::ShardWorker.judge")
    return False
