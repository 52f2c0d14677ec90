"""Object stores and web addresses as file trees, through fsspec.

Needs the extra `remote`; `engine.places` loads this module when an input is an address, and
nothing else does. Reading is by ranges with a read-ahead, so that memory stays bounded.
"""

import sys
from importlib import import_module
from typing import Any, BinaryIO, Final, cast

from dikast.engine.errors import InputError
from dikast.engine.places import shown

_BLOCK_BYTES: Final = 1 << 22
# A web server that sends nothing for so long is given up; how long all of it takes is no matter.
_CONNECT_S, _SILENT_S = 30.0, 60.0

# What the libraries behind an address raise besides OSError. Whatever was raised has been
# imported, so a look at what is loaded finds its class without importing anything.
_RAISED: Final = (
    ("aiohttp", "ClientError"),
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("google.auth.exceptions", "GoogleAuthError"),
    ("gcsfs.retry", "HttpError"),
    ("azure.core.exceptions", "AzureError"),
    ("fsspec.exceptions", "FSTimeoutError"),
    ("fsspec.exceptions", "BlocksizeMismatchError"),
)


class RemoteTree:
    """An fsspec file system with the few calls that an input needs."""

    def __init__(self, system: Any) -> None:
        self._system = system

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What looking and reading may raise, as far as it is loaded."""
        found = [
            getattr(sys.modules.get(module), name, None)
            for module, name in _RAISED
            if module in sys.modules
        ]
        return (
            OSError,
            ValueError,
            *(cast("type[Exception]", each) for each in found if each is not None),
        )

    def is_folder(self, path: str) -> bool:
        """True for a folder that is there."""
        return bool(self._system.isdir(path))

    def is_file(self, path: str) -> bool:
        """True for a file that is there."""
        return bool(self._system.isfile(path))

    def files(self, path: str) -> list[str]:
        """Every file under a folder."""
        return [str(each) for each in self._system.find(path)]

    def matching(self, pattern: str) -> list[str]:
        """Every file that a pattern names."""
        return [str(each) for each in self._system.glob(pattern) if self._system.isfile(each)]

    def open(self, path: str) -> BinaryIO:
        """The file; sought in where the server can."""
        return cast("BinaryIO", self._system.open(path, "rb", block_size=_BLOCK_BYTES))


def _patience(scheme: str) -> dict[str, Any]:
    if scheme not in ("http", "https"):
        return {}
    library = import_module("aiohttp")
    timeout = library.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_SILENT_S)
    return {"client_kwargs": {"timeout": timeout}}


def open_tree(given: str) -> tuple[RemoteTree, str, str]:
    """The tree of an address, the path in it, and what to put before its paths to show them.

    Raises:
        InputError: fsspec or the package for this kind of address is not installed, or there is
            no such kind.
    """
    scheme = given.partition("://")[0]
    name = shown(given)
    try:
        library = import_module("fsspec.core")
    except ImportError as error:
        raise InputError(
            "an address needs the package fsspec: pip install 'dikast[remote]'", file=name
        ) from error
    try:
        system, path = library.url_to_fs(given, **_patience(scheme))
    except ImportError as error:
        raise InputError(f"{scheme}:// needs one more package ({error})", file=name) from error
    except ValueError as error:
        raise InputError(
            f"{scheme}:// is no kind of address that fsspec knows", file=name
        ) from error
    prefix = "" if scheme in ("http", "https") else f"{scheme}://"
    return RemoteTree(system), str(path), prefix
