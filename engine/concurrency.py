"""How many requests of one key may be in flight: additive increase, one cut per 429 episode.

A part of the pacer; a pair meets it on the way to its provider. Pure arithmetic without a clock:
requests are told apart by their number, so "sent before the cut" is exact even when many things
happen at the same instant. It does not know requests or tokens per minute.
"""

# The share that stays after a 429. TCP halves; here the learned request rate does most of the
# work, and a gentler cut loses less when the refusal was about the rate and not about the number.
CUT_SHARE = 0.7


class AdaptiveLimit:
    """A concurrency limit that follows what the provider can bear.

    Args:
        start: requests in flight at first.
        maximum: the limit never exceeds this.
    """

    __slots__ = ("_cut_after", "limit", "maximum", "slow_start")

    def __init__(self, start: int, maximum: int) -> None:
        self.maximum = maximum
        self.limit = float(min(start, maximum))
        self.slow_start = True
        self._cut_after = -1

    def is_current(self, number: int) -> bool:
        """False for a request sent before the last cut: its result says nothing of the present."""
        return number > self._cut_after

    def succeeded(self, number: int, in_flight: int) -> bool:
        """Grow if the limit was used up: by one in slow start (doubles a round), else 1/limit.

        Args:
            number: of the request that succeeded.
            in_flight: requests in flight, this one included.

        Returns:
            Whether the limit grew.
        """
        limit = self.limit
        if in_flight < int(limit) or limit >= self.maximum or number <= self._cut_after:
            return False
        self.limit = min(float(self.maximum), limit + (1.0 if self.slow_start else 1.0 / limit))
        return True

    def cut(self, last_number: int, in_flight: int, needed: float) -> None:
        """Start an episode: keep a share of what was in flight.

        Args:
            last_number: of the last request sent; it and all before it can no longer cut or grow.
            in_flight: requests in flight when the refusal came, the refused one included.
            needed: requests in flight that the learned rate needs; no cut goes below.
        """
        kept = max(min(self.limit, in_flight) * CUT_SHARE, needed, 1.0)
        self.limit = min(kept, self.limit)
        self.slow_start = False
        self._cut_after = last_number

    def __repr__(self) -> str:
        state = ", slow start" if self.slow_start else ""
        return f"AdaptiveLimit({self.limit:.1f} of {self.maximum}{state})"
