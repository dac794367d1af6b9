"""Kubernetes' autoscaler and the pods that it scales, in simulated time: what the shipped settings make of a day.

The formula is that of autoscaling/v2 for an external metric with an AverageValue, and of its `behavior`: see
kubernetes/pkg/controller/podautoscaler, `GetExternalPerPodMetricReplicas` and `calculateScaleUpLimitWithScalingRules`.
"""

import math
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.deploy.manifests import quantity

SYNC_SECONDS = 15  # of the controller manager, by default
TOLERANCE = 0.1  # likewise
SCRAPE_SECONDS = 15  # of the shipped PodMonitor
WINDOW_SECONDS = 60  # of the shipped query's rates
POD_START_SECONDS = 15  # scheduled, loaded, warmed up and found ready; 4 s were measured with the image on the node
CONNECTION_AGE_SECONDS = 300  # of the shipped settings: when a connection ends, its client asks DNS for pods
NUM_CLIENTS = 20
STEP_SECONDS = 5
BURSTS = 0.0015  # of calls, that pods refuse at any load: what a day on a real cluster had


class Autoscaler:
    """Decides on a number of replicas every `SYNC_SECONDS`, from a manifest of a HorizontalPodAutoscaler."""

    def __init__(self, spec: dict[str, Any]) -> None:
        (metric,) = spec["metrics"]
        self._target = float(quantity(metric["external"]["target"]["averageValue"]))
        self._least: int = spec["minReplicas"]
        self._most: int = spec["maxReplicas"]
        self._up, self._down = spec["behavior"]["scaleUp"], spec["behavior"]["scaleDown"]
        self._asked: deque[tuple[float, int]] = deque()
        self._changes: list[tuple[float, int]] = []  # time, pods added

    def replicas(self, now: float, current: int, load: float | None) -> int:
        """Return the number of replicas for a `load` in pods; without an answer from Prometheus it stays."""
        if load is None:
            return current
        asked = current
        if abs(load / (self._target * current) - 1.0) > TOLERANCE:
            asked = math.ceil(load / self._target - 1e-9)
        self._asked.append((now, asked))
        chosen = min(max(current, self._over(now, self._up, min)), self._over(now, self._down, max))
        if chosen > current:
            chosen = min(chosen, self._limit(now, current, self._up, 1))
        elif chosen < current:
            chosen = max(chosen, self._limit(now, current, self._down, -1))
        chosen = min(max(chosen, self._least), self._most)
        if chosen != current:
            self._changes.append((now, chosen - current))
        return chosen

    def _over(self, now: float, rules: dict[str, Any], choose: Callable[[list[int]], int]) -> int:
        """Return the least or most that was asked for within the window of these rules."""
        since = now - float(rules["stabilizationWindowSeconds"])
        return choose([asked for when, asked in self._asked if when > since or when == now])

    def _limit(self, now: float, current: int, rules: dict[str, Any], sign: int) -> int:
        """Return the furthest number of replicas that any of the policies allows now."""
        limits = []
        for policy in rules["policies"]:
            before = current - sum(n for when, n in self._changes if when > now - policy["periodSeconds"])
            step = float(policy["value"]) * (1 if policy["type"] == "Pods" else before / 100)
            limits.append(before + sign * step)
        return math.ceil(max(limits)) if sign > 0 else math.floor(min(limits))


@dataclass(eq=False)
class Pod:
    """A pod that can do 1, and what it counted at each scrape: when, busy seconds, calls, refused calls."""

    ready_from: float
    busy: float = 0.0
    calls: float = 0.0
    refused: float = 0.0
    scrapes: deque[tuple[float, float, float, float]] = field(default_factory=lambda: deque(maxlen=6))

    def serve(self, offered: float) -> float:
        """Take `offered` load for a step; return the share of a pod's capacity that is refused."""
        refused = max(offered - 1.0, BURSTS * offered)
        self.busy += min(offered, 1.0) * STEP_SECONDS
        self.calls += offered * STEP_SECONDS
        self.refused += refused * STEP_SECONDS
        return refused

    def load(self, now: float) -> float | None:
        """Return what the shipped query makes of it; `None` with fewer than two scrapes in its window."""
        window = [each for each in self.scrapes if each[0] > now - WINDOW_SECONDS]
        if len(window) < 2:
            return None
        (began, *first), (ended, *last) = window[0], window[-1]
        busy, calls, refused = ((b - a) / (ended - began) for a, b in zip(first, last, strict=True))
        return busy / max(1.0 - (refused / calls if calls else 0.0), 0.1)


class Client:
    """Balances calls over the pods that DNS named when one of its connections ended last."""

    def __init__(self, pods: list[Pod], chance: random.Random) -> None:
        self._chance = chance
        self._ends = {pod: chance.uniform(0, CONNECTION_AGE_SECONDS) for pod in pods}

    def pods(self, now: float, ready: list[Pod], gone: set[Pod]) -> list[Pod]:
        """Return the pods that get this step's calls."""
        if any(end <= now or pod in gone for pod, end in self._ends.items()):
            fresh = now + CONNECTION_AGE_SECONDS * self._chance.uniform(0.9, 1.1)  # gRPC's jitter
            self._ends = {pod: end if (end := self._ends.get(pod, 0.0)) > now else fresh for pod in ready}
        return list(self._ends)


@dataclass(frozen=True)
class Minute:
    """A minute of the day: load in pods, replicas at its end, the share of calls that were refused."""

    offered: float
    replicas: int
    refused_share: float


def day(spec: dict[str, Any], offered: list[float], seed: int = 1) -> Iterator[Minute]:
    """Play the autoscaler over a day of `offered` load, in pods for each minute; begins with the fewest replicas."""
    chance, scaler = random.Random(seed), Autoscaler(spec)
    pods = [Pod(0.0) for _ in range(spec["minReplicas"])]
    clients = [Client(pods, chance) for _ in range(NUM_CLIENTS)]
    gone: set[Pod] = set()
    for minute, load in enumerate(offered):
        calls = refused = 0.0
        for now in range(60 * minute, 60 * minute + 60, STEP_SECONDS):
            ready = [pod for pod in pods if pod.ready_from <= now]
            shares = dict.fromkeys(ready, 0.0)
            for client in clients:
                known = client.pods(now, ready, gone)
                for pod in known:
                    shares[pod] += load / NUM_CLIENTS / len(known)
            gone.clear()
            refused += sum(pod.serve(share) for pod, share in shares.items())
            calls += load
            if now % SCRAPE_SECONDS == 0:
                for pod in ready:
                    pod.scrapes.append((now, pod.busy, pod.calls, pod.refused))
            if now % SYNC_SECONDS == 5:
                loads = [each for pod in ready if (each := pod.load(now)) is not None]
                wanted = scaler.replicas(now, len(pods), sum(loads) if loads else None)
                pods += [Pod(now + POD_START_SECONDS) for _ in range(wanted - len(pods))]
                gone.update(pods[wanted:])
                del pods[wanted:]
        yield Minute(load, len(pods), refused / calls)
