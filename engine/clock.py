"""The only file that reads the time or sleeps. Everything else is handed a `Clock`."""

import asyncio
import datetime


class SystemClock:
    """The running event loop's clock, so a virtual-time loop makes the whole engine virtual."""

    def now(self) -> float:
        """Monotonic seconds of the running loop."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running loop; zero and below yields once."""
        await asyncio.sleep(max(0.0, seconds))

    def stamp(self) -> str:
        """UTC wall-clock time, ISO 8601 with seconds."""
        return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


class ManualClock:
    """A clock moved by hand, for pure tests without an event loop: `sleep` advances it."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def now(self) -> float:
        """The seconds set so far."""
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        """Advance without waiting."""
        self.now_s += max(0.0, seconds)

    def stamp(self) -> str:
        """A fixed stamp."""
        return "1970-01-01T00:00:00+00:00"
