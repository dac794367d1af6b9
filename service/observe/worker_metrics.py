"""The metrics of worker processes, which only a server of several has."""

import enum

from service.observe.families import Merge
from service.observe.registry import Registry


class WorkerState(enum.Enum):
    """What a worker's own metrics say about it."""

    READY = "ready"
    NOT_READY = "not_ready"  # it loads its models, or restarts an engine
    DRAINING = "draining"
    SILENT = "silent"  # it has ended, or does not answer in time


class WorkerSeries:
    """How many workers there are in each state, and how many have been replaced."""

    def __init__(self, registry: Registry) -> None:
        self.states = registry.gauge("workers", "Worker processes, by state.", "state", merge=Merge.SUM)
        self.restarts = registry.counter("worker_restarts", "Worker processes that ended and were replaced.")
