"""What is told of a client's complaints and of its failures."""

import pytest

pytest.importorskip("confluent_kafka", reason="the extra kafka is not installed")

from confluent_kafka import KafkaError, KafkaException, Producer

from dikast.sinks.kafka.clients import Complaints, reason_of


def test_a_refused_login_is_told_rather_than_the_lost_connection_that_follows() -> None:
    heard, client = Complaints(), Producer({})
    assert heard.of(client, "otherwise") == "otherwise"
    heard(KafkaError(KafkaError._TRANSPORT, "gone"))
    assert heard.of(client, "otherwise") == "gone"
    heard(KafkaError(KafkaError._AUTHENTICATION, "wrong password"))
    heard(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert heard.of(client, "otherwise") == "wrong password"
    heard(KafkaError(KafkaError._SSL, "no certificate"))
    assert heard.of(client, "otherwise") == "no certificate"


def test_the_reason_of_a_fatal_error_is_found_behind_what_python_makes_of_it() -> None:
    fatal = KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))
    wrapped = SystemError("returned a result with an exception set")
    wrapped.__cause__ = fatal
    assert reason_of(fatal).code() == KafkaError._FENCED
    assert reason_of(wrapped).code() == KafkaError._FENCED
    with pytest.raises(SystemError, match="another"):
        reason_of(SystemError("another"))
