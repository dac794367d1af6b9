"""Work after its call: a call of its own, paid for by its caller, waited for by a stop, and ended by a close."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from service.calls.gate import Gate
from service.calls.keys import Quotas, key_lines, new_key
from service.calls.open_calls import OpenCalls
from service.calls.pipeline import CallObserver, CallPipeline
from service.domain.call import Call, begin_call, current_call
from service.domain.errors import Overloaded, QuotaExceeded, ServiceError, Unavailable
from service.jobs.background import BackgroundWork
from service.observe.access_log import LOGGER, AccessLog
from service.observe.metrics import Metrics
from service.observe.recent_errors import RecentErrors
from tests.patience import patient

KEY = new_key()


class Background:
    """Background work, and what became of it."""

    def __init__(self, keys: Path | None = None) -> None:
        self.metrics, self.open_calls = Metrics(), OpenCalls()
        self.failures: list[ServiceError] = []
        self.gate = Gate(keys, self.metrics) if keys else None
        observer = CallObserver(self.metrics, RecentErrors(), AccessLog(1.0, with_texts=False))
        self.work = BackgroundWork(CallPipeline(self.metrics, observer, lambda _: None, self.gate), self.open_calls)

    def start(self, work: Callable[[], Awaitable[None]]) -> "asyncio.Task[None]":
        return self.work.start("work", (), work, self.failed)

    async def failed(self, failure: ServiceError) -> None:
        self.failures.append(failure)

    def count(self, code: str) -> bool:
        """Return whether one call ended with this code."""
        return (
            f'dragoman_requests_total{{code="{code}",kind="other",method="work"}} 1.0'
            in self.metrics.render()[0].decode()
        )


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_stop_waits_for_it() -> None:
    background, may_end = Background(), asyncio.Event()

    async def wait() -> None:
        await may_end.wait()

    task = background.start(wait)
    waiting = asyncio.create_task(background.open_calls.none_for(0.0))
    await asyncio.sleep(0)
    assert not waiting.done()
    may_end.set()
    await asyncio.wait_for(waiting, patient(30))
    assert task.done()
    assert background.count("OK")


async def test_a_close_ends_it_even_before_it_began() -> None:
    background = Background()
    first = background.start(forever)
    await asyncio.sleep(0)
    second = background.start(forever)
    await background.work.close()
    assert first.cancelled()
    assert second.cancelled()
    assert [type(each) for each in background.failures] == [Unavailable]
    await asyncio.wait_for(background.open_calls.none_for(0.0), patient(30))


async def test_it_is_a_call_of_the_same_caller() -> None:
    call = Call("method", "id", origin=("alice", 1))
    begin_call(call)
    found = []

    async def work() -> None:
        found.append(current_call())

    await Background().start(work)
    assert found[0] is not call
    assert (found[0].method, found[0].request_id, found[0].origin[0]) == ("work", "id", "alice")
    assert current_call() is call


@pytest.mark.parametrize(
    ("error", "code"), [(Overloaded("full", 1.0), "RESOURCE_EXHAUSTED"), (KeyError("a bug"), "INTERNAL")]
)
def test_a_failure_is_told_counted_and_logged(error: Exception, code: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> Background:
        begin_call(Call("method", "id"))
        background = Background()

        async def work() -> None:
            raise error

        await background.start(work)
        return background

    with caplog.at_level(logging.INFO, LOGGER):
        background = asyncio.run(scenario())
    assert background.count(code)
    assert f"work {code}" in [record.getMessage() for record in caplog.records if record.name == LOGGER]
    assert ("work failed" in caplog.text) == (code == "INTERNAL")
    [failure] = background.failures
    told = {"RESOURCE_EXHAUSTED": "full", "INTERNAL": "internal error; see request id in the server's log; report it."}
    assert str(failure) == told[code]


async def test_a_failure_that_can_not_be_told_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    background = Background()

    async def work() -> None:
        raise Overloaded("full", 1.0)

    async def failed(_: ServiceError) -> None:
        raise OSError("no space left")

    await background.work.start("work", (), work, failed)
    assert "could not be kept for its caller" in caplog.text
    assert "no space left" in caplog.text


async def test_so_many_at_a_time_as_calls_are_allowed_and_beside_these(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(key_lines(KEY, "alice", None, Quotas(concurrent_calls=1)))
    path.chmod(0o600)
    background = Background(path)
    gate = background.gate
    assert gate is not None
    caller = gate.caller(KEY)
    begin_call(Call("method", "id", caller=caller))
    with gate.call(caller):  # the upload
        first = background.start(forever)
        await asyncio.sleep(0)
    with gate.call(caller):
        await asyncio.wait_for(background.start(forever), patient(30))
    assert [str(each) for each in background.failures] == [
        "key alice has 1 document in progress; allowed: 1 at a time. Wait for one to end."
    ]
    assert isinstance(background.failures[0], QuotaExceeded)
    first.cancel()
    await asyncio.wait({first}, timeout=patient(30))
    done = []

    async def work() -> None:
        done.append(1)

    await background.start(work)
    assert done
