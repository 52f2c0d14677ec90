"""A limit that workers on many machines share through one Redis: `ports.SharedLimit` over it.

A block of calls comes here from `engine.sharing` before it is sent. One Lua script, hence one
atomic step, reserves requests and tokens together by Redis's own clock, so that the workers'
clocks need not agree. Redis keeps three numbers and the names of the workers for each key, for a
minute after the last of them asked. Knows no provider; the only file that knows redis.
"""

import math
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError

from dikast.engine.errors import ConfigError
from dikast.engine.ports import Lease, SharedLimitGone
from dikast.engine.sharing import CATCH_UP_S

# A worker that has not asked for so long is counted no more.
SEEN_S = 10.0
# Waiting longer than this for Redis is worse than going on alone.
TIMEOUT_S = 1.0

# KEYS: state, workers. ARGV: requests, tokens, requests/s, tokens/s (0: no limit), worker,
# seconds of pause to begin, seconds that unused capacity is kept, seconds that a worker counts.
# The same arithmetic as `engine.sharing.Reservations`, which the tests hold it against.
SCRIPT = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1e6
local state = redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'paused')
local catch_up = tonumber(ARGV[7])
local paused = tonumber(state[3] or 0)
local at = math.max(now, paused)
local function reserve(field, held, amount, rate)
  if rate <= 0 or amount == 0 then return end
  local start = math.max(tonumber(held or 0), now - catch_up, paused)
  redis.call('HSET', KEYS[1], field, string.format('%.6f', start + amount / rate))
  at = math.max(at, start)
end
reserve('requests', state[1], tonumber(ARGV[1]), tonumber(ARGV[3]))
reserve('tokens', state[2], tonumber(ARGV[2]), tonumber(ARGV[4]))
local pause = tonumber(ARGV[6])
if pause > 0 and now + pause > paused then
  paused = now + pause
  redis.call('HSET', KEYS[1], 'paused', string.format('%.6f', paused))
end
redis.call('ZADD', KEYS[2], now, ARGV[5])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - tonumber(ARGV[8]))
local life = math.ceil(math.max(60, paused - now + 60, at - now + 60))
redis.call('EXPIRE', KEYS[1], life)
redis.call('EXPIRE', KEYS[2], life)
return {string.format('%.6f', at - now), string.format('%.6f', math.max(0, paused - now)),
        redis.call('ZCARD', KEYS[2])}
"""


class RedisLimit:
    """Implements `ports.SharedLimit`.

    Args:
        url: `redis://HOST:PORT/DB` or `rediss://`, without a password.
        password: of the server, if it wants one.
        worker: a name that no other worker has.
        prefix: stands before the names of keys; runs of different purses use different ones.
    """

    def __init__(
        self, url: str, *, password: str | None = None, worker: str, prefix: str = "dikast"
    ) -> None:
        self._where = url.rpartition("@")[2]
        self._worker = worker
        self._prefix = prefix
        self._redis: Any = cast("Any", Redis).from_url(
            url,
            password=password,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=None,
        )
        self._script: Any = self._redis.register_script(SCRIPT)

    async def check(self) -> None:
        """See that Redis is there and takes the password.

        Raises:
            ConfigError: it does not; a run must not begin with a limit that nobody keeps.
        """
        try:
            await self._redis.ping()
        except (AuthenticationError, NoPermissionError) as error:
            raise ConfigError(
                f"[pacing] shared: Redis at {self._where} wants another password ({error}); set "
                "the variable that [pacing] password_env names"
            ) from error
        except (RedisError, OSError, TimeoutError) as error:
            raise ConfigError(
                f"[pacing] shared: Redis at {self._where} does not answer ({error}); start it, or "
                "leave the setting away to pace this worker alone"
            ) from error

    async def reserve(
        self, key: str, requests: int, tokens: int, requests_per_s: float, tokens_per_s: float
    ) -> Lease:
        """Reserve a block of calls. Source: `ports.SharedLimit.reserve`."""
        return await self._call(key, requests, tokens, requests_per_s, tokens_per_s, 0.0)

    async def pause(self, key: str, wait_s: float) -> None:
        """Pause the key for everybody. Source: `ports.SharedLimit.pause`."""
        await self._call(key, 0, 0, math.inf, math.inf, wait_s)

    async def _call(
        self,
        key: str,
        requests: int,
        tokens: int,
        requests_per_s: float,
        tokens_per_s: float,
        pause_s: float,
    ) -> Lease:
        # One slot for both names: a Redis cluster runs a script on one node.
        name = f"{self._prefix}:{{{key}}}"
        arguments = (
            requests,
            tokens,
            _rate(requests_per_s),
            _rate(tokens_per_s),
            self._worker,
            pause_s,
            CATCH_UP_S,
            SEEN_S,
        )
        try:
            try:
                found = await self._script(keys=[name, f"{name}:workers"], args=arguments)
            except RedisConnectionError:
                # Connections that were open when the server went away fail once each.
                await self._redis.connection_pool.disconnect(inuse_connections=False)
                found = await self._script(keys=[name, f"{name}:workers"], args=arguments)
        except (RedisError, OSError, TimeoutError) as error:
            raise SharedLimitGone(f"Redis at {self._where}: {error}") from error
        wait_s, paused_s, workers = found
        return Lease(wait_s=float(wait_s), paused_s=float(paused_s), workers=int(workers))

    async def aclose(self) -> None:
        """Close the connections; may be called twice."""
        await self._redis.aclose()

    def __repr__(self) -> str:
        return f"RedisLimit({self._where!r}, worker={self._worker!r})"


def _rate(per_s: float) -> float:
    return 0.0 if per_s == math.inf else per_s
