"""Exactly once on Apache Kafka itself: workers killed, the broker restarted, every id once."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kafka.brokers import ApacheKafka, create_topics, produce, read_all

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("DIKAST_KAFKA_STORM"),
        reason="a storm of minutes on a broker of its own; set DIKAST_KAFKA_STORM=1",
    ),
]
PAIRS = 20_000
KILLS = 5
BETWEEN_KILLS = 300
CONFIG = """
[providers.sim]
kind = "simulated"
latency_s = 0.4
latency_kind = "lognormal"
latency_spread = 0.5
[judges.j]
provider = "sim"
model = "m"
[strategy]
kind = "pairwise"
judge = "j"
[run]
workers = 128
"""


class Worker:
    """A `dikast judge` process of its own; a shared call store is not needed."""

    def __init__(self, folder: Path, name: str, servers: str) -> None:
        self.folder = folder
        self.name = name
        self.servers = servers
        self.starts = 0
        self.start()

    def start(self) -> None:
        self.starts += 1
        options = "group=judges&until=end&exactly_once=true&x.session.timeout.ms=2000&drain_s=5"
        command = [
            *(sys.executable, "-m", "dikast", "judge", "--json", "--quiet"),
            f"kafka://{self.servers}/pairs?{options}",
            *("-o", f"kafka://{self.servers}/outcomes"),
            *("--config", str(self.folder / "run.toml")),
            *("--store", str(self.folder / f"{self.name}.sqlite")),
        ]
        with self._file("json").open("wb") as out, self._file("err").open("wb") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err)

    def answers(self) -> int:
        """How many answers of judges are in its store, from all its starts."""
        store = f"file:{self.folder / self.name}.sqlite?mode=ro"
        try:
            with contextlib.closing(sqlite3.connect(store, uri=True)) as read:
                found: tuple[int] = read.execute("SELECT count(*) FROM log").fetchone()
        except sqlite3.OperationalError:
            return 0  # it is not there yet
        return found[0]

    def judges(self, more: int, since: int) -> None:
        """Return when so many answers have come in; a busy machine may take its time to start."""
        deadline_s = time.monotonic() + 120
        while self.answers() < since + more:
            assert self.process.poll() is None, self._file("err").read_text()
            assert time.monotonic() < deadline_s, f"{self.name} judges nothing"
            time.sleep(0.1)

    def _file(self, kind: str) -> Path:
        return self.folder / f"{self.name}.{self.starts}.{kind}"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def summary(self) -> dict[str, object]:
        assert self.process.returncode == 0, self._file("err").read_text()
        told: dict[str, object] = json.loads(self._file("json").read_text())
        return told


def test_every_id_is_there_once_whatever_is_killed(apache: ApacheKafka, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(CONFIG)
    create_topics(apache.servers, "pairs", "outcomes")
    row = '{"id":"p%d","question":"q%d","response_a":"a%d","response_b":"b%d"}'
    produce(
        apache.servers,
        "pairs",
        [(f"p{n}", (row % (n, n, n, n)).encode()) for n in range(PAIRS)],
    )
    rng = random.Random(os.environ.get("DIKAST_TEST_SEED", "7"))
    steady, doomed = (Worker(tmp_path, name, apache.servers) for name in ("steady", "doomed"))
    try:
        steady.judges(BETWEEN_KILLS, since=0)
        for kill in range(KILLS):
            doomed.judges(BETWEEN_KILLS, since=doomed.answers())
            time.sleep(rng.uniform(0.0, 2.0))
            doomed.kill()
            if kill == KILLS // 2:
                apache.stop()
                apache.start()
            doomed.start()
        deadline_s = time.monotonic() + 300
        for worker in (steady, doomed):
            worker.process.wait(max(1.0, deadline_s - time.monotonic()))
    finally:
        for worker in (steady, doomed):
            worker.process.kill()
    outcomes = [
        json.loads(message.value() or b"") for message in read_all(apache.servers, "outcomes")
    ]
    ids = [each["id"] for each in outcomes]
    assert len(ids) == len(set(ids)), "an id is there twice"
    assert set(ids) == {f"p{n}" for n in range(PAIRS)}
    assert {each["kind"] for each in outcomes} == {"verdict"}
    judged = 0
    for worker in (steady, doomed):
        told = worker.summary()
        assert told["adds_up"], told
        judged += told["ledger"]["judged"]  # type: ignore[index]
    assert 0 < judged < PAIRS  # the rest was committed by the killed ones before they died
