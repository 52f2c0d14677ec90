"""`kill -9` inside every stage of SESSE: the same command again ends as if nothing had happened.

A real process talks to a judge on loopback that stalls in one stage, so that the kill is known to
fall inside it. What was stored by then is not asked again: the server counts, not the client.
"""

import gc
import io
import json
import signal
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from dikast.cli import main
from dikast.engine.model import Pair
from dikast.providers import SimulatedSettings, TruthTable
from tests.cli.planted_server import PlantedServer, Visit, serving
from tests.cli.sesse_pairs import JUDGE, PLANTED, STRATEGY, THERE, write_pairs
from tests.cli.tools import Cli, child, rows_of, stored_rows

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

PAIRS = 120
WORKERS = 4
WAIT_S = 90.0  # a machine that is busy otherwise
SETTLED_S = 0.25

RUN = f"""
[run]
workers = {WORKERS}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlantedServer]:
    """The judge, which knows the labels of the pairs."""
    pairs = write_pairs(tmp_path_factory.mktemp("truth") / "pairs.jsonl", PAIRS)
    known = [msgspec.convert(row, Pair) for row in rows_of(pairs)]
    table = tomllib.loads(PLANTED.format(more=""))["providers"]["planted"]
    for name in ("truth", "concurrency_start"):
        del table[name]
    settings = msgspec.convert(table, SimulatedSettings)
    with serving(settings, TruthTable.from_pairs(known)) as found:
        yield found


def written(folder: Path, server: PlantedServer) -> Path:
    """The pairs and the configurations in a folder."""
    write_pairs(folder / "pairs.jsonl", PAIRS)
    text = THERE.format(url=server.url) + JUDGE.format(provider="there", more="")
    (folder / "c.toml").write_text(text + RUN, "utf-8")
    (folder / "run.toml").write_text(text + STRATEGY.format(library="tuned.json") + RUN, "utf-8")
    return folder


def store_of(command: str, folder: Path) -> Path:
    """Each command's own, so that none is spared by what another one asked."""
    return folder / ("dikast-calls.sqlite" if command == "evaluate" else f"{command}.sqlite")


def words_of(command: str, folder: Path) -> list[object]:
    """The command line; everything it reads and writes lies in the folder."""
    store = ("--store", store_of(command, folder))
    pairs, config = folder / "pairs.jsonl", folder / "c.toml"
    if command == "build":
        return [
            *("sesse", "build", pairs, "-o", folder / "lib.json", "--config", config, *store),
            *("--clusters", 12, "--merge-quantile", 0.2, "--split-dev", 0.8),
            *("--embedder", "there:letters"),
        ]
    if command == "tune":
        return [
            *("sesse", "tune", folder / "lib.json", pairs, "-o", folder / "tuned.json"),
            *("--config", config, "--keep-all", *store),
        ]
    if command == "judge":
        out = folder / "out.jsonl"
        return ["judge", pairs, "-o", out, "--config", folder / "run.toml", "--limit", 70, *store]
    return [
        *("sesse", "evaluate", folder / "out.jsonl", "--pairs", pairs, "--config", config),
        *("--embedder", "there:letters", "--html", folder / "page.html"),
    ]


COMMANDS = ("build", "tune", "judge", "evaluate")
MADE = {"build": "lib.json", "tune": "tuned.json", "judge": "out.jsonl", "evaluate": "page.html"}


class Whole(NamedTuple):
    """What nobody killed: what each command made, asked and said."""

    folder: Path
    visits: dict[str, Visit]
    results: dict[str, Any]


@pytest.fixture(scope="module")
def whole(server: PlantedServer, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """All four commands in a row."""
    threshold = gc.get_threshold()
    folder = written(tmp_path_factory.mktemp("whole"), server)
    visits: dict[str, Visit] = {}
    results: dict[str, Any] = {}
    for command in COMMANDS:
        visits[command] = server.visit()
        with redirect_stdout(io.StringIO()) as out:
            assert main([*map(str, words_of(command, folder)), "--json"]) == 0
        results[command] = result_of(command, folder, out.getvalue())
    gc.set_threshold(*threshold)
    gc.unfreeze()
    return Whole(folder, visits, results)


def result_of(command: str, folder: Path, out: str) -> Any:
    """What must be the same however it came about."""
    if command in ("build", "tune"):
        return json.loads(out)["hash"]
    if command == "judge":
        rows = sorted(rows_of(folder / "out.jsonl"), key=lambda row: row["id"])
        for row in rows:
            row.pop("file")
            row.pop("stored_calls", None)  # what was spared
        return rows
    return json.loads(out)["taxonomy"]


@pytest.fixture
def folder(server: PlantedServer, whole: Whole, tmp_path: Path) -> Path:
    """A folder of its own, with what the commands before have made."""
    written(tmp_path, server)
    for name in ("lib.json", "tuned.json", "out.jsonl"):
        (tmp_path / name).write_bytes((whole.folder / name).read_bytes())
    return tmp_path


def until(process: "subprocess.Popen[str]", holds: Callable[[], bool]) -> None:
    """Wait for something to come about while the process lives."""
    end_s = time.monotonic() + WAIT_S
    while not holds():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end_s, "it never came to that"
        time.sleep(0.002)


def stalled(visit: Visit, store: Path) -> Callable[[], bool]:
    """True once requests are held back, all else is stored, and nothing moves any more."""
    seen: list[tuple[float, int, int]] = []

    def holds() -> bool:
        if not visit.held or stored_rows(store) != visit.answered:
            seen.clear()
            return False
        now = (visit.asked.total(), len(visit.held))
        if not seen or seen[0][1:] != now:
            seen[:] = [(time.monotonic(), *now)]
        return time.monotonic() - seen[0][0] >= SETTLED_S

    return holds


STAGES = [
    ("build", "holistic", 30),
    ("build", "draft", 15),
    ("build", "embed", 128),
    ("build", "summarise", 5),
    ("build", "embed-labels", 0),
    ("build", "equivalence", 3),
    ("build", "resummarise", 1),
    ("tune", "tier1", 5),
    ("tune", "tier2", 20),
    ("tune", "holistic", 5),
    ("tune", "self-fix", 5),
    ("judge", "tier1", 5),
    ("judge", "tier2", 20),
    ("evaluate", "embed", 128),
]


@pytest.mark.parametrize(("command", "stage", "after"), STAGES)
def test_killed_inside_a_stage(
    cli: Cli,
    server: PlantedServer,
    whole: Whole,
    folder: Path,
    command: str,
    stage: str,
    after: int,
) -> None:
    prepared(folder, command)
    store = store_of(command, folder)
    visit = server.visit(stage, after)
    process = child(*words_of(command, folder))
    until(process, stalled(visit, store))
    killed(process)
    # A part of the stage was done (of vectors, one batch or the other), and more was wanted.
    assert (visit.of_stage[stage] > 0) == (after > 0)
    assert visit.held
    assert_resumed(cli, server, whole, folder, command, visit, store)


def test_killed_while_it_clusters(
    cli: Cli, server: PlantedServer, whole: Whole, folder: Path
) -> None:
    prepared(folder, "build")
    before = whole.visits["build"].of_stage
    vectors = stats_of(whole)["questions"]
    store = store_of("build", folder)
    visit = server.visit()
    process = child(*words_of("build", folder))
    assert process.stderr is not None
    # Clustering begins when this line is out, and takes much longer than a signal.
    assert any(f"embed {vectors}/{vectors}" in line for line in process.stderr)
    err = killed(process)
    assert stored_rows(store) == before["holistic"] + before["draft"] + vectors
    assert "cluster" not in err
    assert visit.of_stage["summarise"] == 0
    assert_resumed(cli, server, whole, folder, "build", visit, store)


def prepared(folder: Path, command: str) -> None:
    """Only what is there before the command runs."""
    (folder / MADE[command]).unlink(missing_ok=True)


def killed(process: "subprocess.Popen[str]") -> str:
    """What the process said until it was killed."""
    process.kill()
    _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == -signal.SIGKILL
    return err


def stats_of(whole: Whole) -> dict[str, Any]:
    """The figures of the library that nobody interrupted."""
    stats: dict[str, Any] = json.loads((whole.folder / "lib.json").read_text("utf-8"))["stats"]
    return stats


def assert_resumed(
    cli: Cli,
    server: PlantedServer,
    whole: Whole,
    folder: Path,
    command: str,
    first: Visit,
    store: Path,
) -> None:
    """The same command ends as it would have; it asks what was not stored, once."""
    if command != "judge":  # outcomes are written as they come
        assert not (folder / MADE[command]).exists()
    kept = stored_rows(store)
    second = server.visit()
    ran = cli(*words_of(command, folder), "--json")
    assert ran.code == 0, ran.err
    assert result_of(command, folder, ran.out) == whole.results[command]
    once = whole.visits[command].asked
    assert set(second.asked.values()) <= {1}
    assert first.asked.keys() | second.asked.keys() == once.keys()
    assert second.asked.total() == len(once) - kept
    assert first.asked.keys() & second.asked.keys() == first.held
