"""`dikast audit serve`: the labelling page until Ctrl-C, every decision on disk at once."""

import argparse
import os
import secrets
import sys
from pathlib import Path

from dikast import audit_server, status
from dikast.analysis.audit_rows import read_sample
from dikast.audit_desk import Book, Desk
from dikast.engine.clock import SystemClock
from dikast.engine.errors import ConfigError, InputError
from dikast.signals import first_signal
from dikast.sinks.files import open_output

TOKEN = "DIKAST_AUDIT_TOKEN"


async def run(args: argparse.Namespace) -> int:
    """Serve until a signal; prints the address on stdout and what was labelled on stderr."""
    token = None if args.no_token else os.environ.get(TOKEN) or secrets.token_urlsafe(24)
    if token is None and not audit_server.is_loopback(args.host):
        raise ConfigError(
            f"--no-token with --host {args.host} would let anyone on the network label; leave "
            "one of the two out"
        )
    if args.output.endswith((".gz", ".zst")):
        raise InputError("labels are written plain; name a .jsonl file", file=args.output)
    items = list(read_sample(args.sample))
    book = Book(Path(args.output), open_output(Path(args.output)))
    try:
        desk = Desk(
            items, book, seed=args.seed, repeat_share=args.repeat, clock=SystemClock()
        )  # fmt: skip
        return await _serve(args, desk, book, token)
    finally:
        book.close()


async def _serve(args: argparse.Namespace, desk: Desk, book: Book, token: str | None) -> int:
    try:
        server = await audit_server.start(desk, host=args.host, port=args.port, token=token)
    except OSError as error:
        raise InputError(f"cannot listen on {args.host}:{args.port}: {error.strerror}") from error
    # Whoever reads the address may send the signal at once: it must be caught by then.
    with first_signal() as stop:
        print(server.url + (f"#token={token}" if token else ""), flush=True)
        if book.torn:
            _tell(f"the last line of {args.output} was cut short by a crash and is removed")
        if not audit_server.is_loopback(args.host):
            _tell(f"anyone who can reach {args.host} and knows the token can label")
        _tell("open the address above in a browser; every decision is saved at once; Ctrl-C ends")
        try:
            await stop
        finally:
            await server.aclose()
    people, decisions = desk.summary()
    _tell(f"{decisions:,} decisions of {people:,} annotators are in {args.output}")
    return status.OK


def _tell(text: str) -> None:
    print(f"dikast: {text}", file=sys.stderr, flush=True)
