"""Connections a run may hold open, fitted to what the system grants, before the first call."""

import sys

import msgspec

from dikast.config import Settings
from dikast.process import open_files_max
from dikast.providers import OpenAIChatSettings

# What a run opens beside its connections: output, manifest, store, inputs, the event loop's own.
_RESERVED_FILES = 64


def fit_open_files(settings: Settings) -> Settings:
    """The settings with no more connections than the process may open, and one sentence if so.

    Without it the surplus calls would fail as if the network were at fault.
    """
    remote = {
        name: found
        for name, entry in settings.providers.items()
        if isinstance(found := entry.settings, OpenAIChatSettings)
    }
    files_max = open_files_max()
    if files_max is None or not remote:
        return settings
    wanted = sum(found.concurrency for found in remote.values())
    room = max(len(remote), files_max - _RESERVED_FILES)
    if wanted <= room:
        return settings
    fitted = dict(settings.providers)
    for name, found in remote.items():
        share = max(1, found.concurrency * room // wanted)
        fitted[name] = msgspec.structs.replace(
            fitted[name], settings=msgspec.structs.replace(found, concurrency=share)
        )
    needed = wanted + _RESERVED_FILES
    sys.stderr.write(
        f"dikast: only {files_max:,} files may be open, so at most {room:,} calls are in the air "
        f"at once instead of {wanted:,}; raise the limit with: ulimit -n {needed}\n"
    )
    return msgspec.structs.replace(settings, providers=fitted)
