"""Kafka in and out: pairs from a topic, outcomes into one, and both in one transaction.

The two directions live together because exactly-once is one transaction over both. Imported only
where a `kafka://` address is used; needs the extra `kafka` (confluent-kafka).
"""

from dikast.sinks.kafka.address import KafkaAddress, parse_address
from dikast.sinks.kafka.commit import CommittingSink
from dikast.sinks.kafka.scan import TopicScan, scan_topic
from dikast.sinks.kafka.sink import KafkaSink
from dikast.sinks.kafka.source import KafkaSource
from dikast.sinks.kafka.transaction import TransactionalSink

__all__ = [
    "CommittingSink",
    "KafkaAddress",
    "KafkaSink",
    "KafkaSource",
    "TopicScan",
    "TransactionalSink",
    "parse_address",
    "scan_topic",
]
