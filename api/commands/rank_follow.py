"""`dikast rank --follow`: the ranking of an output that a run is still writing.

Reads what was appended, adds it to a `LiveRanking`, and draws the table anew when it has changed.
Ends when the run's manifest says that it has ended; a file without a manifest is followed until
Ctrl-C. A file that was replaced or cut is read again from its beginning.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dikast import status
from dikast.commands.reporting import drawn
from dikast.engine.clock import SystemClock
from dikast.engine.errors import InputError
from dikast.engine.model import Outcome
from dikast.engine.ports import Clock
from dikast.extras import needs
from dikast.manifest import read_manifest
from dikast.tables import As, Measure, Share, Table

if TYPE_CHECKING:
    from dikast.analysis.ranking import LiveRanking

_BLOCK_BYTES = 1 << 22


async def follow(args: argparse.Namespace) -> int:
    """Print a table whenever there is news; exit status 0 when the run has ended."""
    shape: As = "json" if args.json else "md" if args.md else "terminal"
    await follow_output(
        Path(args.battles[0]), SystemClock(), every_s=args.every_s, ridge=args.ridge, shape=shape
    )
    return status.OK


async def follow_output(
    path: Path, clock: Clock, *, every_s: float, ridge: float, shape: As
) -> None:
    """Follow one output until its run has ended.

    Args:
        path: the output; it need not be there yet.
        clock: waits between looks.
        every_s: seconds between looks.
        ridge: of the live ranking.
        shape: how the tables are drawn; in JSON one object a line.

    Raises:
        InputError: a line is not an outcome.
    """
    with needs("analysis", "dikast rank"):
        from dikast.analysis.ranking import LiveRanking
    tail = _Tail(path)
    live = LiveRanking(ridge=ridge)
    while True:
        ended = _has_ended(path)  # before the look: what it wrote last is then seen by the look
        live, news = tail.look(live)
        if news:
            sys.stdout.write(_draw(live, path, shape))
            sys.stdout.flush()
        if ended and not news:
            return
        if not ended or not news:
            await clock.sleep(every_s)


class _Tail:
    """Where reading has come to in a growing file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file_id: tuple[int, int] | None = None
        self._at = 0
        self._line = 0
        self._decode = msgspec.json.Decoder(Outcome).decode

    def look(self, live: "LiveRanking") -> tuple["LiveRanking", bool]:
        """Add what is new; a new ranking when the file is another one, and whether it changed."""
        try:
            with self._path.open("rb") as file:
                state = os.fstat(file.fileno())
                file_id = (state.st_dev, state.st_ino)
                if file_id != self._file_id or state.st_size < self._at:
                    if self._file_id is not None:
                        live = live.afresh()
                    self._file_id, self._at, self._line = file_id, 0, 0
                file.seek(self._at)
                changed = False
                while block := file.read(_BLOCK_BYTES):
                    whole, newline, _ = block.rpartition(b"\n")
                    if not newline:
                        break  # the last line is still being written
                    self._add(whole, live)
                    self._at += len(whole) + 1
                    file.seek(self._at)
                    changed = True
                return live, changed
        except FileNotFoundError:
            return live, False
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=str(self._path)) from error

    def _add(self, lines: bytes, live: "LiveRanking") -> None:
        for raw in lines.split(b"\n"):
            self._line += 1
            if not raw or raw.isspace():
                continue
            try:
                live.add(self._decode(raw))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise InputError(
                    f"is not an outcome written by dikast judge ({error}); --follow reads those",
                    file=str(self._path),
                    line=self._line,
                ) from error


def _has_ended(path: Path) -> bool:
    manifest = read_manifest(path)
    return bool(manifest and manifest.runs and manifest.runs[-1].status != "running")


def _draw(live: "LiveRanking", path: Path, shape: As) -> str:
    rows = live.rows()
    left = ", ".join(f"{count:,} {why}" for why, count in live.left_out.items())
    if shape == "json":
        state = {"battles": live.battles, "left_out": dict(live.left_out), "models": rows}
        return msgspec.json.encode(state).decode() + "\n"
    grouped = any(row.group for row in rows)
    table = Table(
        f"{path}: {live.battles:,} battles so far",
        (*(("group",) if grouped else ()), "rank", "model", "rating", "+-", "win rate", "n"),
        tuple(
            (
                *((row.group + 1,) if grouped else ()),
                place,
                row.model,
                Measure(row.rating, None, 0),
                Measure(row.error, None, 0),
                Share(row.win_rate),
                row.battles,
            )
            for place, row in enumerate(rows, start=1)
        ),
        (
            f"Bradley-Terry, ties and disagreements half a win; left out: {left or 'nothing'}",
            "+-: one standard error as if all battles were independent; rank the finished output "
            "for intervals by prompt",
        ),
    )
    return drawn(table, shape)
