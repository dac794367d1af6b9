"""From what was measured to pods, requests and the autoscaler's target. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

MIB, GIB = 2**20, 2**30

# An autoscaler's load for a pod (docs/kubernetes.md): 1.5 times as much still fits in while another pod starts.
_TARGET_SHARE = 0.65
_LEAST_PODS = 2  # one may always go, in a rollout or with its node
_BASE_BYTES = 0.3 * GIB  # the process itself (docs/sizing.md)
_MEASURED_SHARE = 1.25  # of the highest memory seen, for what a minute does not show
_MEMORY_STEP = 256 * MIB


@dataclass(frozen=True, slots=True)
class Memory:
    """What a pod needs memory for, in bytes."""

    measured: float
    bundles: Sequence[int]  # of all models together, one each
    slots: float
    cache: int = 0

    @property
    def limit(self) -> int:
        """Return request and limit: by the formula of docs/sizing.md, at least a quarter above what was measured."""
        formula = 2 * sum(self.bundles) + max(self.bundles) + self.slots + self.cache + _BASE_BYTES
        return math.ceil(max(formula, _MEASURED_SHARE * self.measured) / _MEMORY_STEP) * _MEMORY_STEP


@dataclass(frozen=True, slots=True)
class Advice:
    """How to run the service for a rate: pods if their number is fixed; and what an autoscaler should be told."""

    pods: int
    cpus: int  # to request, of each
    memory_bytes: int
    least_pods: int
    most_pods: int
    target_load: float  # of a pod


def advise(rate: float, pod_rate: float, load: float, threads: int, memory: Memory) -> Advice:
    """Return what `rate` calls per second take, with pods that keep the objective up to `pod_rate` each.

    `load` is a pod's own at that rate, by the metrics that autoscalers read. With a fixed number of pods the others
    carry all if one is missing. An autoscaler keeps each at `_TARGET_SHARE` of what it can do.
    """
    carrying = math.ceil(rate / pod_rate)
    scaled = math.ceil(rate / (_TARGET_SHARE * pod_rate))
    pods = max(carrying + 1, scaled)
    target = math.floor(100 * _TARGET_SHARE * min(load, 1.0)) / 100
    return Advice(pods, threads, memory.limit, _LEAST_PODS, 2 * pods, max(target, 0.01))


def values(advice: Advice, pool: str = "default") -> str:
    """Return values of deploy/helm/dragoman for a pool, in YAML; `replicas` counts without an autoscaler."""
    return "\n".join(
        (
            "pools:",
            f"  {pool}:",
            f"    cpu: {advice.cpus}",
            f"    memory: {_quantity(advice.memory_bytes)}",
            f"    replicas: {advice.pods}",
            "    autoscaling:",
            f"      minReplicas: {advice.least_pods}",
            f"      maxReplicas: {advice.most_pods}",
            f"      targetLoad: {advice.target_load:g}",
        )
    )


def _quantity(num_bytes: int) -> str:
    return f"{num_bytes // GIB}Gi" if num_bytes % GIB == 0 else f"{num_bytes // MIB}Mi"
