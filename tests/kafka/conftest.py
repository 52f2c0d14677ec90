"""Brokers, one for the whole session each."""

import os
from collections.abc import Iterator

import pytest

from tests.kafka.brokers import ApacheKafka, MockCluster, why_no_apache


@pytest.fixture(scope="session")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """Apache Kafka; skipped where there is no Java, an error where it was said to be there."""
    reason = why_no_apache()
    if reason is not None and not os.environ.get("DIKAST_REQUIRE_KAFKA"):
        pytest.skip(reason)
    broker = ApacheKafka(tmp_path_factory.mktemp("kafka"))
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def mock_cluster() -> Iterator[MockCluster]:
    """A mock cluster of its own for every test."""
    cluster = MockCluster()
    yield cluster
    cluster.close()
