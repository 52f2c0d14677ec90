"""Addresses of topics: read whole or refused in one sentence, never with a secret in it."""

import pytest

pytest.importorskip("confluent_kafka", reason="the extra kafka is not installed")

from dikast.engine.errors import ConfigError
from dikast.sinks.kafka import KafkaAddress, parse_address


def test_an_address_says_where_and_how() -> None:
    address = parse_address(
        "kafka://a:9092,b:9092/pairs?group=g&until=end&exactly_once=true&format=msgpack"
        "&compression=lz4&dead_letter=dead&x.linger.ms=20&security=sasl_ssl&mechanism=PLAIN&ca=/c"
    )
    assert address == KafkaAddress(
        servers="a:9092,b:9092",
        topic="pairs",
        group="g",
        until="end",
        exactly_once=True,
        format="msgpack",
        compression="lz4",
        dead_letter="dead",
        client={
            "linger.ms": "20",
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "PLAIN",
            "ssl.ca.location": "/c",
        },
    )
    assert address.name == "kafka://a:9092,b:9092/pairs"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kafka://host:1", "is no address of a topic"),
        ("kafka://host:1/a/b", "is no address of a topic"),
        ("kafka:///topic", "is no address of a topic"),
        ("kafka://h:1/t?gruop=g", "there is no option 'gruop'"),
        ("kafka://h:1/t?until=tomorrow", "until=tomorrow is not known; use never or end"),
        ("kafka://h:1/t?drain_s=long", "drain_s=long must be a number from 0 to 3600"),
        ("kafka://h:1/t?x.sasl.password=hush", "is a secret"),
        ("kafka://h:1/t?x.ssl.keystore.password=hush", "is a secret"),
        ("kafka://h:1/t?x.sasl.oauthbearer.client.secret=hush", "is a secret"),
        ("kafka://h:1/t?dead_letter=t", "need a topic of their own"),
        ("kafka://h:1/t?x.metadata.broker.list=hush", "cannot be changed"),
        ("kafka://h:1/t?x.acks=0", "cannot be changed"),
        ("kafka://me:hush@h:1/t", "do not belong in an address"),
    ],
)
def test_what_is_wrong_is_said_without_secrets(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        parse_address(text)
    assert "hush" not in str(caught.value)


def test_passwords_come_from_the_environment() -> None:
    address = parse_address("kafka://h:1/t?security=sasl_ssl")
    env = {"DIKAST_KAFKA_USERNAME": "me", "DIKAST_KAFKA_PASSWORD": "hush"}
    settings = address.common(env)
    assert (settings["sasl.username"], settings["sasl.password"]) == ("me", "hush")
    with pytest.raises(ConfigError, match="DIKAST_KAFKA_PASSWORD, which is not set"):
        address.common({"DIKAST_KAFKA_USERNAME": "me"})
    assert "sasl.password" not in parse_address("kafka://h:1/t").common(env)
