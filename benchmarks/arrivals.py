"""Arrival times of calls: an open-loop schedule, fixed before the first call is made."""

import numpy as np


def poisson_schedule(rate: float, seconds: float, num_texts: int, seed: int) -> list[tuple[float, int]]:
    """Return arrivals of a Poisson process with `rate` per second over `seconds`, each with the index of a text.

    The same arguments give the same schedule. Times are in seconds from the start, ascending.
    """
    if rate <= 0 or seconds <= 0 or num_texts < 1:
        raise ValueError(f"rate {rate}, seconds {seconds}, num_texts {num_texts}; all must be positive.")
    rng = np.random.default_rng(seed)
    times: list[float] = []
    now = float(rng.exponential(1 / rate))
    while now < seconds:
        times.append(now)
        now += float(rng.exponential(1 / rate))
    return list(zip(times, map(int, rng.integers(0, num_texts, len(times))), strict=True))
