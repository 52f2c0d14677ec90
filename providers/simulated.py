"""A judge that is made up, in this process: seeded, of stated accuracy and bias, free of charge.

Stands where a model API would. What it decides is in `simulation`; this file gives it latency and
faults and speaks the `Provider` port. Everything it serves is marked as simulated.
"""

from dikast.engine.errors import ConfigError, ProviderError
from dikast.engine.model import Call, Completion
from dikast.engine.ports import Clock, RateInfo, Reply
from dikast.providers.planted import criterion_problems, simulated_answer
from dikast.providers.simulation import Answer, SimulatedSettings
from dikast.providers.traffic import Traffic, TrafficStats
from dikast.providers.truth import TruthTable

_RATES = (
    "accuracy",
    "consistency",
    "tie_rate",
    "obeys_injection",
    "garbage_rate",
    "truncate_rate",
    "refuse_rate",
    "error_rate",
    "hang_rate",
    "reset_rate",
    "error_200_rate",
)


def check_settings(where: str, settings: SimulatedSettings) -> None:
    """See that probabilities are probabilities.

    Args:
        where: the settings' place in the configuration, for messages.
        settings: to be checked.

    Raises:
        ConfigError: a value is out of range; the message names the field.
    """
    for field in _RATES:
        if not 0 <= getattr(settings, field) <= 1:
            raise ConfigError(f"{where}.{field}: must lie between 0 and 1")
    for field in ("position_bias", "length_bias"):
        if not -0.5 <= getattr(settings, field) <= 0.5:
            raise ConfigError(f"{where}.{field}: must lie between -0.5 and 0.5")
    for field in ("latency_s", "latency_spread", "hang_s"):
        if not 0 <= getattr(settings, field) < float("inf"):
            raise ConfigError(f"{where}.{field}: must be a number of seconds, 0 or more")
    odd = settings.garbage_rate + settings.truncate_rate + settings.refuse_rate
    faults = (
        settings.error_rate + settings.hang_rate + settings.reset_rate + settings.error_200_rate
    )
    if odd > 1:
        raise ConfigError(
            f"{where}: garbage_rate, truncate_rate and refuse_rate must not exceed 1 together"
        )
    if faults > 1:
        raise ConfigError(
            f"{where}: error_rate, hang_rate, reset_rate and error_200_rate must not exceed 1 "
            "together"
        )
    problem = criterion_problems(where, settings.criteria)
    if problem is not None:
        raise ConfigError(problem)
    limit = settings.rate_limit
    if limit is not None and not (limit.requests_per_min > 0 and limit.burst >= 1):
        raise ConfigError(
            f"{where}.rate_limit: requests_per_min must be above 0 and burst at least 1"
        )


class SimulatedProvider:
    """A `Provider` without a network.

    Args:
        settings: the judge's character and its faults.
        clock: waits out the latency and drives the rate limit.
        truth: what the judge may know of the better answers.
    """

    simulated = True

    def __init__(
        self, settings: SimulatedSettings, clock: Clock, truth: TruthTable | None = None
    ) -> None:
        check_settings("simulated", settings)
        self._settings = settings
        self._clock = clock
        self._truth = truth
        self._traffic: Traffic | None = None

    def __repr__(self) -> str:
        return f"SimulatedProvider(seed {self._settings.seed}, {self._traffic or 'unused'})"

    async def complete(self, call: Call) -> Reply:
        """Answer after the simulated latency. Source: `Provider.complete`.

        Raises:
            ProviderError: a simulated fault, limit or refusal, of the kind a real one would have.
        """
        # Made here and not in the constructor: the clock may need a running loop.
        traffic = self._traffic
        if traffic is None:
            traffic = self._traffic = Traffic(self._settings, self._clock.now())
        wait_s = traffic.arrive(self._clock.now())
        try:
            if wait_s is not None:
                raise ProviderError(
                    "rate", "simulated: too many requests", status=429, retry_after_s=wait_s
                )
            return await self._answer(call, traffic)
        finally:
            traffic.leave()

    async def check(self) -> None:
        """Always reachable."""

    async def aclose(self) -> None:
        """Nothing to close; may be called twice."""

    def stats(self) -> TrafficStats:
        """What arrived so far."""
        return self._traffic.stats() if self._traffic else TrafficStats()

    async def _answer(self, call: Call, traffic: Traffic) -> Reply:
        judge = call.judge
        said = self._said(call)
        await self._meet_fault(traffic, said)
        if said.latency_s > 0:
            await self._clock.sleep(said.latency_s)
        if said.refusal:
            raise ProviderError("refused", "simulated: the model declined to answer", status=200)
        completion = Completion(
            text=said.text,
            finish_reason=said.finish,
            usage=said.usage,
            logprobs=said.logprobs,
            latency_s=said.latency_s,
            served_by=f"simulated:{judge.model}",
        )
        return Reply(completion=completion, rate=self._rate_info(traffic))

    def _said(self, call: Call) -> Answer:
        judge = call.judge
        return simulated_answer(
            self._settings,
            self._truth,
            judge.model,
            [turn.content for turn in call.messages],
            draw=(judge.params.seed or 0) + call.sample,
            logprobs=judge.params.logprobs or judge.params.top_logprobs is not None,
        )

    async def _meet_fault(self, traffic: Traffic, said: Answer) -> None:
        match traffic.fault(said.digest):
            case None:
                return
            case "error":
                raise ProviderError("transient", "simulated: server error", status=500)
            case "reset":
                raise ProviderError("transient", "simulated: connection reset")
            case "error_200":
                raise ProviderError("transient", "simulated: error inside HTTP 200", status=200)
            case "hang":
                await self._clock.sleep(self._settings.hang_s)
                raise ProviderError("timeout", f"simulated: no answer in {self._settings.hang_s} s")

    def _rate_info(self, traffic: Traffic) -> RateInfo | None:
        limit = self._settings.rate_limit
        if limit is None or not limit.headers or traffic.gate is None:
            return None
        left, full_s = traffic.gate.remaining(self._clock.now())
        return RateInfo(
            requests_limit=int(limit.requests_per_min),
            requests_remaining=left,
            requests_reset_s=full_s,
        )
