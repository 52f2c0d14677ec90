"""Brokers for tests: Apache Kafka itself, and the mock cluster inside the client's own library."""

import contextlib
import ctypes
import glob
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
_UP_S = 180.0  # a machine that is busy otherwise


def why_no_apache() -> str | None:
    """Why Apache Kafka cannot be started here; None when it can."""
    if not shutil.which("java"):
        return "no Java on this machine"
    if not (ROOT / ".kafka" / "version").exists() and not shutil.which("mvn"):
        return "Apache Kafka's jars are not here and Maven is missing (scripts/kafka fetch)"
    return None


class ApacheKafka:
    """One broker in KRaft mode on loopback; its data outlive a restart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port(2)  # the next one is the controller's
        self.servers = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return when it answers."""
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(ROOT / "scripts" / "kafka"), "start", str(self.folder), str(self.port)],
                stdout=log,
                stderr=log,
            )
        deadline_s = time.monotonic() + _UP_S
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        told = (self.folder / "broker.log").read_text("utf-8", "replace")[-2000:]
        raise RuntimeError(f"Apache Kafka did not start:\n{told}")

    def stop(self, *, hard: bool = False) -> None:
        """Stop it; with `hard` as a power cut would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill() if hard else process.terminate()
            process.wait(30)

    def __repr__(self) -> str:
        return f"ApacheKafka({self.servers})"


class MockCluster:
    """librdkafka's mock cluster, driven through the library that the client package ships."""

    def __init__(self, brokers: int = 1) -> None:
        self._lib = _library()
        error = ctypes.create_string_buffer(512)
        conf = self._lib.rd_kafka_conf_new()
        self._client = self._lib.rd_kafka_new(0, conf, error, 512)
        assert self._client, error.value.decode()
        self._cluster = self._lib.rd_kafka_mock_cluster_new(self._client, brokers)
        # A group need not wait three seconds for members that nobody will send.
        self._lib.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)
        self.servers = str(self._lib.rd_kafka_mock_cluster_bootstraps(self._cluster).decode())
        self.brokers = brokers

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        assert not self._lib.rd_kafka_mock_topic_create(
            self._cluster, topic.encode(), partitions, 1
        )

    def fail_produce(self, *codes: int) -> None:
        """The next produce requests are answered with these errors, one each."""
        self._lib.rd_kafka_mock_push_request_errors_array(
            self._cluster, 0, len(codes), (ctypes.c_int * len(codes))(*codes)
        )

    def set_rtt_ms(self, rtt_ms: int) -> None:
        """Every answer takes so long."""
        for broker in range(1, self.brokers + 1):
            self._lib.rd_kafka_mock_broker_set_rtt(self._cluster, broker, rtt_ms)

    def down(self) -> None:
        """All brokers are gone."""
        for broker in range(1, self.brokers + 1):
            self._lib.rd_kafka_mock_broker_set_down(self._cluster, broker)

    def up(self) -> None:
        """All brokers are back."""
        for broker in range(1, self.brokers + 1):
            self._lib.rd_kafka_mock_broker_set_up(self._cluster, broker)

    def close(self) -> None:
        """Let go of it."""
        self._lib.rd_kafka_mock_cluster_destroy(self._cluster)
        self._lib.rd_kafka_destroy(self._client)


def _library() -> Any:
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    found = glob.glob(os.fspath(folder / "librdkafka-*.so*"))
    assert found, "the client package ships no library of its own"
    lib = ctypes.CDLL(found[0])
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    lib.rd_kafka_conf_new.restype = pointer
    lib.rd_kafka_new.restype = pointer
    lib.rd_kafka_new.argtypes = [ctypes.c_int, pointer, text, ctypes.c_size_t]
    lib.rd_kafka_mock_cluster_new.restype = pointer
    lib.rd_kafka_mock_cluster_new.argtypes = [pointer, ctypes.c_int]
    lib.rd_kafka_mock_cluster_bootstraps.restype = text
    lib.rd_kafka_mock_cluster_bootstraps.argtypes = [pointer]
    lib.rd_kafka_mock_group_initial_rebalance_delay_ms.argtypes = [pointer, ctypes.c_int32]
    lib.rd_kafka_mock_cluster_destroy.argtypes = [pointer]
    lib.rd_kafka_destroy.argtypes = [pointer]
    lib.rd_kafka_mock_topic_create.argtypes = [pointer, text, ctypes.c_int, ctypes.c_int]
    lib.rd_kafka_mock_push_request_errors_array.argtypes = [
        pointer,
        ctypes.c_int16,
        ctypes.c_size_t,
        pointer,
    ]
    lib.rd_kafka_mock_broker_set_rtt.argtypes = [pointer, ctypes.c_int32, ctypes.c_int]
    lib.rd_kafka_mock_broker_set_down.argtypes = [pointer, ctypes.c_int32]
    lib.rd_kafka_mock_broker_set_up.argtypes = [pointer, ctypes.c_int32]
    return lib


def create_topics(
    servers: str, *topics: str, partitions: int = 4, config: dict[str, str] | None = None
) -> None:
    """Make topics on a real broker."""
    admin = AdminClient({"bootstrap.servers": servers})
    new = [NewTopic(each, num_partitions=partitions, config=config or {}) for each in topics]
    made = admin.create_topics(new)
    for each in made.values():
        each.result()


def delete_topics(servers: str, *topics: str) -> None:
    """Take topics away from a real broker."""
    admin = AdminClient({"bootstrap.servers": servers})
    for each in admin.delete_topics(list(topics)).values():
        each.result()


def produce(servers: str, topic: str, records: list[tuple[str, bytes]]) -> None:
    """Put records into a topic."""
    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": 1_000_000})
    for key, value in records:
        producer.produce(topic, value, key=key)
    assert producer.flush(60) == 0


def each_of(servers: str, topic: str, *, deadline_s: float = 60.0) -> Iterator[Message]:
    """The committed records of a topic, one by one; none is kept."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        partitions = sorted(consumer.list_topics(topic, timeout=15).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        ended: set[int] = set()
        until_s = time.monotonic() + deadline_s
        while len(ended) < len(partitions):
            assert time.monotonic() < until_s, f"{topic} was not read to its end"
            for message in consumer.consume(1000, timeout=0.1):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition() or 0)
    finally:
        consumer.close()


def read_all(servers: str, topic: str) -> list[Message]:
    """All committed records of a topic."""
    return list(each_of(servers, topic))


def visit(servers: str, topic: str, group: str, stay_s: float) -> None:
    """Join a group, stay a while, commit nothing, and leave."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "session.timeout.ms": 6000,
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    until_s = time.monotonic() + stay_s
    while time.monotonic() < until_s:
        consumer.poll(0.1)
    consumer.close()
