"""`dikast judge` between files and topics of Apache Kafka itself, as a user runs it."""

import asyncio
import itertools
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from dikast.engine.errors import SinkError
from dikast.engine.model import Verdict
from dikast.sinks.kafka import KafkaSink, parse_address
from tests.kafka.brokers import ApacheKafka, create_topics, delete_topics, produce, read_all

pytestmark = pytest.mark.realtime
PAIRS = 300


class Ran:
    def __init__(self, code: int, summary: dict[str, Any], err: str) -> None:
        self.code = code
        self.summary = summary
        self.err = err


def judge(folder: Path, *words: str, by: str = "simulated:careful") -> Ran:
    command = [sys.executable, "-m", "dikast", "judge", *words, "--judge", by]
    done = subprocess.run(
        [*command, "--json"], cwd=folder, capture_output=True, text=True, timeout=180, check=False
    )
    return Ran(done.returncode, json.loads(done.stdout or "{}"), done.stderr)


def row(number: int) -> dict[str, str]:
    return {"id": f"p{number}", "question": "q", "response_a": f"a{number}", "response_b": "b"}


def file_of_pairs(folder: Path, count: int = PAIRS) -> str:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row(n)) + "\n" for n in range(count)))
    return path.name


def ids(broker: ApacheKafka, topic: str) -> list[str]:
    return sorted(json.loads(each.value() or b"")["id"] for each in read_all(broker.servers, topic))


def expected(count: int = PAIRS) -> list[str]:
    return sorted(f"p{n}" for n in range(count))


def test_a_file_goes_into_a_topic_and_the_same_command_goes_on(
    apache: ApacheKafka, tmp_path: Path
) -> None:
    create_topics(apache.servers, "file-out")
    where = f"kafka://{apache.servers}/file-out"
    pairs = file_of_pairs(tmp_path)
    first = judge(tmp_path, pairs, "-o", where, "--limit", "100")
    assert (first.code, first.summary["ledger"]["judged"]) == (0, 100)
    again = judge(tmp_path, pairs, "-o", where)
    assert again.summary["ledger"]["skipped"] == 100
    assert again.summary["ledger"]["judged"] == PAIRS - 100
    assert again.summary["whole_output"]["judged"] == PAIRS
    assert again.summary["whole_output"]["spent_usd"] is None  # a topic has no manifest
    assert ids(apache, "file-out") == expected()
    records = read_all(apache.servers, "file-out")
    assert all(record.key() for record in records)
    headers = dict(records[0].headers() or [])
    assert headers["dikast-spec"] == first.summary["spec"].encode()
    other = judge(tmp_path, pairs, "-o", where, "--seed", "5")
    assert other.code == 2
    assert "was produced by other settings" in other.err
    assert len(records) == PAIRS


def test_a_topic_goes_into_a_file_and_what_is_in_the_file_is_not_judged_again(
    apache: ApacheKafka, tmp_path: Path
) -> None:
    create_topics(apache.servers, "topic-in")
    rows = [(f"p{n}", json.dumps(row(n)).encode()) for n in range(PAIRS)]
    produce(apache.servers, "topic-in", [*rows, ("bad", b"{half"), ("none", b"")])
    where = f"kafka://{apache.servers}/topic-in?until=end&group="
    ran = judge(tmp_path, where + "one", "-o", "out.jsonl")
    assert ran.code == 1, ran.err
    assert ran.summary["ledger"]["judged"] == PAIRS
    assert ran.summary["ledger"]["failed"] == {"bad_row": 2}
    assert ran.summary["adds_up"]
    again = judge(tmp_path, where + "one", "-o", "out.jsonl")
    assert (again.code, again.summary["ledger"]["input"]) == (0, 0)  # the group has done it all
    assert "2 failed ones stay in it" in again.err
    assert "another ?group=NAME reads it anew" in again.err
    kept = again.summary["whole_output"]
    assert (kept["judged"], kept["failed"]) == (PAIRS, {"bad_row": 2})
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == PAIRS + 2
    other = judge(tmp_path, where + "two", "-o", "out.jsonl")
    assert other.summary["ledger"]["skipped"] == PAIRS  # another group, but the file has them
    assert other.summary["requests_sent"] == 0
    assert other.summary["whole_output"]["rows"] == PAIRS + 2  # the bad ones were found again


def test_failed_rows_of_a_topic_stay_in_the_file_and_another_group_judges_them_again(
    apache: ApacheKafka, tmp_path: Path
) -> None:
    create_topics(apache.servers, "topic-failed")
    produce(
        apache.servers,
        "topic-failed",
        [(f"p{n}", json.dumps(row(n)).encode()) for n in range(3)],
    )
    where = f"kafka://{apache.servers}/topic-failed?until=end&group="

    def record(ids: list[str]) -> None:
        votes = [("ab", "A"), ("ba", "B")]
        rows = [
            {"pair_id": id, "judge": "gpt", "template": "t", "order": order, "raw": raw}
            for id in ids
            for order, pick in votes
            for raw in [json.dumps({"verdict": pick})]
        ]
        (tmp_path / "rec.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))

    def run(group: str) -> Ran:
        return judge(tmp_path, where + group, "-o", "out.jsonl", by="replay:rec.jsonl?t:gpt")

    record(["p0"])
    first = run("one")
    assert first.summary["whole_output"]["failed"] == {"missing": 2}
    record(["p0", "p1"])
    same = run("one")
    assert (same.summary["ledger"]["input"], same.summary["whole_output"]["rows"]) == (0, 3)
    assert "2 failed ones stay in it" in same.err
    other = run("two")
    assert (other.summary["ledger"]["skipped"], other.summary["ledger"]["judged"]) == (1, 1)
    whole = other.summary["whole_output"]
    assert (whole["judged"], whole["failed"], whole["rows"]) == (2, {"missing": 1}, 3)
    last = {
        each["id"]: each["kind"]
        for each in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    }
    assert last == {"p0": "verdict", "p1": "verdict", "p2": "failed"}
    assert run("two").summary["whole_output"] == whole | {"spent_usd": 0.0}
    ids = [json.loads(each)["id"] for each in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted(ids) == ["p0", "p1", "p2"], "the lines that were replaced are dropped by now"


def test_a_run_fans_out_and_an_optional_sink_may_break(apache: ApacheKafka, tmp_path: Path) -> None:
    create_topics(apache.servers, "fan-out")
    pairs = file_of_pairs(tmp_path, 50)
    topic = f"kafka://{apache.servers}/fan-out"
    nowhere = "optional:kafka://127.0.0.1:1/nothing?ask_s=0.5&delivery_s=1&close_s=0"
    ran = judge(tmp_path, pairs, "-o", "out.jsonl", "--sink", topic, "--sink", nowhere)
    assert ran.code == 0, ran.err
    assert "gets nothing more: kafka://127.0.0.1:1/nothing: no broker answers" in ran.err
    assert ids(apache, "fan-out") == expected(50)
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == expected(50)
    strict = judge(tmp_path, pairs, "-o", "two.jsonl", "--sink", nowhere.removeprefix("optional:"))
    assert strict.code == 3
    assert not (tmp_path / "two.jsonl").read_text()  # the file is written last


async def test_a_topic_that_is_deleted_during_a_run_does_not_come_back_empty(
    apache: ApacheKafka,
) -> None:
    create_topics(apache.servers, "gone")
    quick = "x.topic.metadata.propagation.max.ms=500&x.topic.metadata.refresh.interval.ms=200"
    sink = KafkaSink(parse_address(f"kafka://{apache.servers}/gone?{quick}"), run="r1")

    async def write_for_ever() -> None:
        for number in itertools.count(1):
            await sink.write(Verdict(id=f"p{number}", winner="A", spec="s1"))

    await sink.write(Verdict(id="p0", winner="A", spec="s1"))
    delete_topics(apache.servers, "gone")
    with pytest.raises(SinkError, match="there is no such topic"):
        await asyncio.wait_for(write_for_ever(), 30)
    await sink.aclose()


def test_a_topic_that_was_made_anew_is_read_from_its_beginning_and_once(
    apache: ApacheKafka, tmp_path: Path
) -> None:
    create_topics(apache.servers, "anew-in", "anew-out", partitions=1)
    produce(apache.servers, "anew-in", [(f"p{n}", json.dumps(row(n)).encode()) for n in range(9)])
    foreign = Consumer({"bootstrap.servers": apache.servers, "group.id": "anew"})
    foreign.commit(offsets=[TopicPartition("anew-in", 0, 999)], asynchronous=False)
    foreign.close()
    words = (
        f"kafka://{apache.servers}/anew-in?group=anew&until=end",
        "-o",
        f"kafka://{apache.servers}/anew-out",
    )
    assert judge(tmp_path, *words).summary["ledger"]["judged"] == 9
    assert judge(tmp_path, *words).summary["ledger"]["judged"] == 0
    assert ids(apache, "anew-out") == expected(9)


@pytest.mark.parametrize("once", [False, True])
def test_a_topic_that_is_missing_is_named_at_once(
    apache: ApacheKafka, tmp_path: Path, once: bool
) -> None:
    name = f"some-{once}"
    create_topics(apache.servers, f"{name}-in", f"{name}-out", partitions=1)
    produce(apache.servers, f"{name}-in", [("p1", json.dumps(row(1)).encode())])
    pairs = f"kafka://{apache.servers}/{name}-in?group=g&until=end&exactly_once=true"
    words = (pairs if once else file_of_pairs(tmp_path, 1), "-o")
    for out, missing in ((f"{name}-not", "not"), (f"{name}-out?dead_letter={name}-dead", "dead")):
        ran = judge(tmp_path, *words, f"kafka://{apache.servers}/{out}")
        assert ran.code == 3
        assert f"{name}-{missing}: there is no such topic; create it first" in ran.err


@pytest.mark.parametrize("once", [False, True])
def test_only_what_is_too_large_by_itself_is_a_dead_letter_and_nothing_is_lost(
    apache: ApacheKafka, tmp_path: Path, once: bool
) -> None:
    name = f"narrow-{once}"
    create_topics(apache.servers, f"{name}-in", f"{name}-dead", partitions=1)
    create_topics(apache.servers, f"{name}-out", partitions=1, config={"max.message.bytes": "5000"})
    long = {n: {"meta": {"m": random.Random(n).randbytes(9000).hex()}} for n in (7, 8)}
    rows = [json.dumps({**row(n), **long.get(n, {})}) for n in range(30)]
    source = tmp_path / "pairs.jsonl"
    source.write_text("\n".join(rows))
    if once:
        produce(apache.servers, f"{name}-in", [("k", each.encode()) for each in rows])
    pairs = f"kafka://{apache.servers}/{name}-in?group=g&until=end&exactly_once=true"
    out = f"kafka://{apache.servers}/{name}-out"
    words = (pairs if once else source.name, "-o")
    stopped = judge(tmp_path, *words, out)
    assert (stopped.code, "too large for the broker" in stopped.err) == (3, True)
    done = judge(tmp_path, *words, f"{out}?dead_letter={name}-dead")
    assert done.code == 0
    assert f"2 outcomes were too large and went to {name}-dead" in done.err
    assert ids(apache, f"{name}-dead") == ["p7", "p8"]
    assert ids(apache, f"{name}-out") == sorted(set(expected(30)) - {"p7", "p8"})


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("kafka://h:1/t", "-o", "o.jsonl"), "a source needs a consumer group"),
        (("kafka://h:1/t?group=g", "x.jsonl", "-o", "o.jsonl"), "cannot be judged together"),
        (
            ("kafka://h:1/t?group=g&exactly_once=true", "-o", "o.jsonl"),
            "the output has to be a topic",
        ),
        (("kafka://h:1/t?group=g&ask_s=0.2", "-o", "o.jsonl"), "no broker answers"),
        (("kafka://h:1/t?group=g", "-o", "kafka://h:1/t"), "is read by the same command"),
        (
            ("kafka://h:1/t?group=g", "-o", "kafka://h:1/u", "--sink", "kafka://h:1/u"),
            "is written twice",
        ),
        (("kafka://h:1/t?group=g&x.gnu=1", "-o", "o.jsonl"), 'configuration property: "gnu"'),
        (
            ("kafka://h:1/t?group=g&x.session.timeout.ms=soon", "-o", "o.jsonl"),
            "a number of milliseconds",
        ),
    ],
)
def test_what_cannot_work_is_said_in_a_sentence(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    ran = judge(tmp_path, *words)
    assert ran.code == 2
    assert says in ran.err
    assert "Traceback" not in ran.err
