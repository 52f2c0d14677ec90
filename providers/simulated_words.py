"""What made-up models have in common that only have to say something: latency, usage, the port.

A provider hands in the words; this file makes a completion of them and speaks the `Provider` port.
"""

from abc import ABC, abstractmethod

from dikast.engine.model import Call, Completion, Usage
from dikast.engine.ports import Clock, Reply

_CHARS_PER_TOKEN = 4


class SimulatedWords(ABC):
    """A `Provider` without a network.

    Args:
        latency_s: seconds until an answer.
        clock: waits them out.
    """

    simulated = True

    def __init__(self, latency_s: float, clock: Clock) -> None:
        self._latency_s = latency_s
        self._clock = clock

    async def complete(self, call: Call) -> Reply:
        """Answer after the latency. Source: `Provider.complete`.

        Raises:
            ProviderError: the prompt is none that it knows.
        """
        if self._latency_s > 0:
            await self._clock.sleep(self._latency_s)
        prompt = "\n".join(turn.content for turn in call.messages)
        text = self._say(prompt, call)
        completion = Completion(
            text=text,
            finish_reason="stop",
            usage=Usage(
                input=len(prompt) // _CHARS_PER_TOKEN, output=len(text) // _CHARS_PER_TOKEN
            ),
            latency_s=self._latency_s,
            served_by=f"simulated:{call.judge.model}",
        )
        return Reply(completion=completion)

    async def check(self) -> None:  # noqa: B027 - always reachable, whatever it says
        """Always reachable."""

    async def aclose(self) -> None:  # noqa: B027 - there is nothing to close
        """Nothing to close; may be called twice."""

    @abstractmethod
    def _say(self, prompt: str, call: Call) -> str:
        """The words; raises `ProviderError` where the prompt is not understood."""
