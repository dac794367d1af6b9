"""A worker's place among the others: what the process that starts it tells its server."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from service.faces.front.control import ControlOfAll, served_by
from service.faces.front.monitoring import any_is_ready
from service.faces.front.worker import WorkerEndpoint
from service.models.control import ModelControl
from service.process.forked import Parent
from service.server.shares import admin_socket, documents_folder, front_socket, metrics_socket


@dataclass(frozen=True, slots=True)
class Worker:
    """Worker `number` of `count`, with the sockets of all in `folder`."""

    number: int
    count: int
    folder: Path
    parent: Parent

    @property
    def documents(self) -> Path:
        return documents_folder(self.folder)

    def control(self, own: ModelControl, *, is_explicit: bool) -> ControlOfAll:
        return ControlOfAll(own, front_socket(self.folder), is_explicit=is_explicit)

    async def others_serve(self) -> bool:
        """Return whether any of the other workers serves, so that this one joins or replaces one."""
        return await any_is_ready([each for each in endpoints(self.folder, self.count) if each.number != self.number])

    async def served_by_others(self) -> Collection[str] | None:
        """Return the names of the models that the other workers serve; `None` if none of them serves yet."""
        return await served_by([each for each in endpoints(self.folder, self.count) if each.number != self.number])


def endpoints(folder: Path, count: int) -> list[WorkerEndpoint]:
    """Return the sockets of all workers."""
    return [WorkerEndpoint(n, metrics_socket(folder, n), admin_socket(folder, n)) for n in range(count)]
