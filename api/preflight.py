"""Whether the optional packages are there that the named inputs and outputs need.

Looked at before anything is opened, made or paid; used by `judge`, by several workers and by
`check`, which tells the same without judging. Loads none of the packages.
"""

from collections.abc import Iterable
from pathlib import Path

from dikast import streams
from dikast.engine.errors import ConfigError
from dikast.extras import see_installed
from dikast.sinks import is_table_name

_TABLES = (".parquet", ".arrow", ".feather")


def see_extras(
    read: Iterable[str] = (), written: Iterable[str] = (), *, shared_limit: bool = False
) -> None:
    """See that what is named can be read and written.

    Args:
        read: inputs, as on the command line.
        written: outputs and sinks, as on the command line.
        shared_limit: whether workers share a limit over Redis.

    Raises:
        ConfigError: a package is not installed; the sentence names it and the extra to install.
    """
    for where in read:
        if streams.is_kafka(where):
            see_installed("kafka", where, "confluent_kafka")
        elif "://" in where:
            see_installed("remote", where, "fsspec")
        if Path(where.partition("?")[0]).suffix.lower() in _TABLES:
            see_installed("parquet", f"{where}: reading a table", "pyarrow")
    for where in written:
        place = where.removeprefix("optional:")
        if streams.is_kafka(place):
            see_installed("kafka", where, "confluent_kafka")
        elif place.startswith("parquet:") or is_table_name(place):
            see_installed("parquet", f"{where}: writing a table", "pyarrow")
    if shared_limit:
        see_installed("redis", "[pacing] shared", "redis")


def see_merged_name(where: str) -> None:
    """See that an output which is put together of shards does not promise to be a table.

    Raises:
        ConfigError: its name does; what would be written is JSON lines.
    """
    if is_table_name(where):
        raise ConfigError(
            f"-o {where}: shards are put together as JSON lines, and this is the name of a table; "
            f"name it {Path(where).with_suffix('.jsonl')} and make the table of it with: dikast "
            f"convert {Path(where).with_suffix('.jsonl')} -o {where}"
        )
