"""A server whose latency is known: a queue with one place and a fixed time of service, in simulated time."""

import math
import random

from service.cli.percentile import percentile


class SimulatedQueue:
    """Simulated trials, in simulated time, on a server that takes the same time for each call (M/D/1)."""

    def __init__(self, service_seconds: float) -> None:
        self.service_seconds = service_seconds

    def p99(self, rate: float, num_calls: int, seed: int, lead: float = 0.0) -> float:
        """Return it of the calls after the share `lead`; infinite if the server did not keep up (measurement.py)."""
        drawn = random.Random(seed)
        now, free_at = 0.0, 0.0
        latencies: list[float] = []
        for _ in range(num_calls):
            now += drawn.expovariate(rate)
            free_at = max(free_at, now) + self.service_seconds
            latencies.append(free_at - now)
        if lead and free_at - now > 0.05 * now + 3 * self.service_seconds:
            return math.inf
        return percentile(latencies[round(lead * num_calls) :], 0.99)

    def true_rate(self, objective: float) -> float:
        """Return the highest rate with that 99th percentile over a long time."""
        low, high = 0.0, 1 / self.service_seconds
        for _ in range(8):
            middle = (low + high) / 2
            low, high = (middle, high) if self.p99(middle, 60_000, seed=0) <= objective else (low, middle)
        return low
