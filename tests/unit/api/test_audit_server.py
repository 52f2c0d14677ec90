"""The page's server over a real socket: who is let in, what comes out, errors in one sentence."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from dikast import audit_server
from dikast.audit_desk import Book, Desk
from dikast.engine.clock import SystemClock
from tests.cli.tools import rows_of
from tests.unit.api.test_audit_desk import Disk, items

pytestmark = pytest.mark.realtime


class Open(NamedTuple):
    client: aiohttp.ClientSession
    url: str
    labels: Path
    disk: Disk

    async def post(self, what: str, body: Any, **more: Any) -> tuple[int, Any]:
        more.setdefault("headers", {"Authorization": "Bearer key"})
        async with self.client.post(f"{self.url}api/{what}", json=body, **more) as response:
            return response.status, await response.json()


@asynccontextmanager
async def opened(tmp_path: Path, token: str | None = "key") -> AsyncIterator[Open]:
    path = tmp_path / "labels.jsonl"
    disk = Disk(path)
    desk = Desk(items(3), Book(path, disk), seed=0, repeat_share=0, clock=SystemClock())
    server = await audit_server.start(desk, token=token)
    try:
        async with aiohttp.ClientSession() as client:
            yield Open(client, server.url, path, disk)
    finally:
        await server.aclose()


async def test_a_label_goes_through(tmp_path: Path) -> None:
    async with opened(tmp_path) as site:
        assert await site.post("session", {"annotator": "ana"}) == (
            200,
            {"annotator": "ana", "total": 3, "done": 0, "next": 0},
        )
        status, item = await site.post("item", {"annotator": "ana", "at": 0})
        assert status == 200
        assert {"id", "stratum", "inclusion_probability", "category"}.isdisjoint(item)
        body = {"annotator": "ana", "at": 0, "choice": "tie", "duration_s": 1.5}
        assert (await site.post("label", body))[0] == 200
        assert rows_of(site.labels)[0]["label"] == "tie"


async def test_strangers_are_refused(tmp_path: Path) -> None:
    who = {"annotator": "ana"}
    async with opened(tmp_path) as site:
        assert (await site.post("session", who, headers={}))[0] == 401
        assert (await site.post("session", who, headers={"Authorization": "Bearer kez"}))[0] == 401
        rebound = {"Authorization": "Bearer key", "Host": "evil.example"}
        assert (await site.post("session", who, headers=rebound))[0] == 403
        form = {"Authorization": "Bearer key", "Content-Type": "text/plain"}
        async with site.client.post(f"{site.url}api/session", data=b"{}", headers=form) as response:
            assert response.status == 415
    async with opened(tmp_path, token=None) as site:
        assert (await site.post("session", who, headers={}))[0] == 200
        assert (await site.post("session", who, headers={"Host": "evil.example"}))[0] == 403


async def test_errors_are_one_sentence(tmp_path: Path) -> None:
    async with opened(tmp_path) as site:
        for what, body, status in (
            ("session", {"annotator": ""}, 400),
            ("item", {"annotator": "ana", "at": 9}, 400),
            ("item", {"annotator": "ana", "at": "x"}, 400),
            ("label", {"annotator": "ana", "at": 0, "choice": "A"}, 400),
            ("label", {"annotator": "ana", "at": 0, "choice": "tie", "id": "p1"}, 400),
            ("label", {"annotator": "a" * 100_000, "at": 0, "choice": "tie"}, 413),
            ("nothing", {}, 404),
        ):
            found, answer = await site.post(what, body)
            assert (found, list(answer)) == (status, ["error"]), what
        site.disk.full = True
        status, answer = await site.post("label", {"annotator": "ana", "at": 0, "choice": "tie"})
        assert status == 507
        assert "not saved" in answer["error"]
        assert site.labels.read_bytes() == b""


async def test_every_answer_carries_the_content_policy(tmp_path: Path) -> None:
    async with opened(tmp_path) as site:
        for path in ("", "audit.js", "words.js", "audit.css", "icon.svg", "api/session", "../x"):
            async with site.client.get(site.url + path) as response:
                policy = response.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                assert response.headers["Cache-Control"] == "no-store"
        async with site.client.get(site.url) as response:
            text = await response.text()
        assert "<script type" in text
        assert "style=" not in text
        assert "onclick" not in text


def test_what_loopback_is() -> None:
    assert audit_server.is_loopback("127.0.0.1")
    assert audit_server.is_loopback("localhost")
    assert not audit_server.is_loopback("0.0.0.0")
