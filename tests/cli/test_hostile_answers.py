"""Hostile answers over real HTTP: each pair ends as the outcome it deserves, none is guessed."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

CONFIG = """
[providers.local]
kind = "openai"
base_url = "http://127.0.0.1:{port}/v1"
api_key_env = ""
timeout_s = 0.5

[judges.j]
provider = "local"
model = "m"

[strategy]
kind = "pairwise"
judge = "j"
template = "pairwise-marker-en"
keep_text = true

[run]
workers = 4
retry = {{ attempts = 2, base_s = 0.01 }}
"""

# As JSON text, so that the escapes travel as escapes: a line separator and half of a pair.
ODD_ANSWER = (
    b'{"model":"m","choices":[{"message":{"role":"assistant","content":'
    b'"one\\u2028two \\ud800 three\\n\\n[[A]]"},"finish_reason":"stop"}]}'
)
ERROR_IN_200 = b'{"error":{"message":"overloaded, but [[A]] is better","type":"server_error"}}'


async def serve(body: bytes | None) -> asyncio.Server:
    """A server that gives every request the same answer, or accepts and never answers."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                await reader.readexactly(size)
                if body is None:
                    await reader.read()  # until the client gives up
                    return
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    return await asyncio.start_server(handle, "127.0.0.1", 0)


async def judge(tmp_path: Path, body: bytes | None) -> tuple[int | None, list[dict[str, Any]]]:
    """Judge three pairs against such a server: the exit status and the outcomes."""
    server = await serve(body)
    port = server.sockets[0].getsockname()[1]
    (tmp_path / "dikast.toml").write_text(CONFIG.format(port=port))
    rows = [
        {
            "id": f"h{i}",
            "question": "q?",
            "response_a": f"a\ud800 {i}",
            "response_b": f"b\u2028 {i}",
        }
        for i in range(3)
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out.jsonl"
    try:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dikast", "judge", str(tmp_path / "pairs.jsonl")),
            *("-o", str(out), "--config", str(tmp_path / "dikast.toml"), "--quiet"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        await child.communicate()
    finally:
        server.close()
    lines = [line for line in out.read_bytes().split(b"\n") if line]
    return child.returncode, [json.loads(line) for line in lines]


@pytest.mark.realtime
async def test_separators_and_half_pairs_in_texts_leave_whole_lines_and_the_verdict(
    tmp_path: Path,
) -> None:
    code, outcomes = await judge(tmp_path, ODD_ANSWER)
    assert code == 0
    assert sorted(outcome["id"] for outcome in outcomes) == ["h0", "h1", "h2"]
    for outcome in outcomes:
        (vote,) = outcome["votes"]
        shown_first = "A" if vote["order"] == "ab" else "B"
        assert (outcome["kind"], outcome["winner"]) == ("verdict", shown_first)
        assert "one\u2028two" in vote["text"]


@pytest.mark.realtime
async def test_an_error_inside_http_200_is_never_a_verdict(tmp_path: Path) -> None:
    code, outcomes = await judge(tmp_path, ERROR_IN_200)
    assert code == 1
    assert {(o["kind"], o["reason"], o["attempts"]) for o in outcomes} == {
        ("failed", "transient", 2)
    }


@pytest.mark.realtime
async def test_a_server_that_never_answers_is_a_timeout_of_its_own(tmp_path: Path) -> None:
    code, outcomes = await judge(tmp_path, None)
    assert code == 1
    assert {(o["kind"], o["reason"], o["attempts"]) for o in outcomes} == {("failed", "timeout", 2)}
