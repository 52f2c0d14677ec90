"""A planted judge behind a real socket that counts what it is asked and can stall in one stage.

For tests that kill a process: what is held back proves where the process was, and what was asked
is counted from outside.
"""

import json
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from dikast.providers.planted import criterion_in, simulated_answer, task_of
from dikast.providers.simulation import SimulatedSettings
from dikast.providers.truth import TruthTable

LETTERS = "abcdefgio"


class Visit:
    """What one process asked, in units that are paid for: a call, or a text to embed.

    `asked` counts them; those in `held` were never answered. `of_stage` counts the answered ones
    of each stage.
    """

    def __init__(self, stage: str | None = None, after: int = 0) -> None:
        self.stage = stage
        self.after = after
        self.asked: Counter[str] = Counter()
        self.held: set[str] = set()
        self.of_stage: Counter[str] = Counter()
        self.gone = Event()

    @property
    def answered(self) -> int:
        """Units with an answer."""
        return self.asked.total() - len(self.held)

    def admit(self, stage: str, units: Sequence[str]) -> bool:
        """Count a request in; False holds it back."""
        self.asked.update(units)
        if stage == self.stage and self.of_stage[stage] + len(units) > self.after:
            self.held.update(units)
            return False
        self.of_stage[stage] += len(units)
        return True


class PlantedServer:
    """Answers as the simulated judge does; `visit` begins the account of a new process."""

    def __init__(self, settings: SimulatedSettings, truth: TruthTable) -> None:
        self._settings = settings
        self._truth = truth
        self._lock = Lock()
        self.now = Visit()
        self.url = ""

    def visit(self, stage: str | None = None, after: int = 0) -> Visit:
        """From now on `after` units of the stage are answered and no more; None stalls nowhere."""
        self.now.gone.set()
        self.now = Visit(stage, after)
        return self.now

    def answer(self, path: str, body: dict[str, Any]) -> bytes | None:
        """The body of the answer; None when the client went away meanwhile."""
        visit = self.now
        chat = path.endswith("/chat/completions")
        contents = [turn["content"] for turn in body["messages"]] if chat else body["input"]
        units = [_unit(str(contents))] if chat else [_unit(text) for text in contents]
        with self._lock:
            let_in = visit.admit(self._stage_of(visit, contents if chat else None), units)
        if not let_in:
            visit.gone.wait(timeout=60)
            return None
        found = self._said(body["model"], contents) if chat else _vectors(contents)
        return json.dumps(found).encode()

    def _stage_of(self, visit: Visit, contents: list[str] | None) -> str:
        """The stage by what is asked (None: vectors) and by what was asked before."""
        if contents is None:
            return "embed-labels" if visit.of_stage["summarise"] else "embed"
        task = task_of(contents)
        assert task is not None, contents
        if task == "summarise" and visit.of_stage["equivalence"]:
            return "resummarise"
        if task == "tier2" and visit.of_stage["holistic"]:
            return "self-fix"
        return task

    def _said(self, model: str, contents: list[str]) -> dict[str, Any]:
        said = simulated_answer(self._settings, self._truth, model, contents)
        text = said.text
        if task_of(contents) == "summarise":
            # Labels that differ and mean the same: themes that have to be asked about and merged.
            criterion = criterion_in(self._settings, text)
            name = "" if criterion is None else criterion.condition
            text = json.dumps({"condition": f"{name} in way {_unit(str(contents))[:2]}"})
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": said.usage.input, "completion_tokens": said.usage.output}
        choice = {"index": 0, "message": message, "finish_reason": said.finish}
        return {"model": f"simulated:{model}", "choices": [choice], "usage": usage}


def _unit(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _vectors(texts: list[str]) -> dict[str, Any]:
    rows = [
        {"index": at, "embedding": [float(text.count(each)) + 0.01 for each in LETTERS]}
        for at, text in enumerate(texts)
    ]
    return {"data": rows}


@contextmanager
def serving(settings: SimulatedSettings, truth: TruthTable) -> Iterator[PlantedServer]:
    """The server on a free port of loopback."""
    desk = PlantedServer(settings, truth)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = desk.answer(self.path, sent)
            if body is None:
                self.close_connection = True
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            return  # the other side was killed: that is what it is for

    server = Server(("127.0.0.1", 0), Handler)
    desk.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield desk
    finally:
        desk.now.gone.set()
        server.shutdown()
        server.socket.shutdown(socket.SHUT_RDWR)
        server.server_close()
        thread.join()
