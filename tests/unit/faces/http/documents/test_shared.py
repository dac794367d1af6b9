"""Documents in files: what one process keeps, others find, whatever becomes of it."""

import asyncio
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from service.domain.errors import InvalidRequest, NotFound, Overloaded, QuotaExceeded, ServiceError, Unavailable
from service.faces.http.documents.kept import KEPT_SECONDS
from service.faces.http.documents.shared import SharedDocuments
from service.faces.http.documents.translation import TranslatedDocument
from tests.clock import Clock
from tests.patience import patient
from tests.servers import REPOSITORY

TRANSLATED = TranslatedDocument("a.de.txt", "text/plain", b"Halt\n", (), 4)
ADDS = """
import asyncio, sys
from pathlib import Path
from service.faces.http.documents.shared import SharedDocuments
print(asyncio.run(SharedDocuments(Path(sys.argv[1])).add("", 1, 600.0)).id)
"""


def documents_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")


def test_another_process_sees_each_step(tmp_path: Path) -> None:
    async def scenario() -> None:
        one, other = SharedDocuments(tmp_path), SharedDocuments(tmp_path)
        kept = await one.add("alice", 1, 1.0)
        assert (await other.find(kept.id, "alice")).num_characters is None
        await one.done(kept, TRANSLATED)
        found = await other.find(kept.id, "alice")
        assert (found.num_characters, found.key) == (4, kept.key)
        assert (await other.take(found)).data == b"Halt\n"
        with pytest.raises(NotFound):
            await one.find(kept.id, "alice")
        assert documents_in(tmp_path) == []

    asyncio.run(scenario())


def test_the_limits_are_those_of_all_processes(tmp_path: Path) -> None:
    async def scenario() -> None:
        keepers = [SharedDocuments(tmp_path) for _ in range(4)]
        wanted = [keepers[number % 4].add("", 2**20, 1.0) for number in range(140)]
        found = await asyncio.gather(*wanted, return_exceptions=True)
        assert sum(isinstance(each, Overloaded) for each in found) == 12
        assert len(documents_in(tmp_path)) == 128

    asyncio.run(scenario())


def test_of_several_takers_one_gets_it(tmp_path: Path) -> None:
    def take(kept_id: str) -> bool:
        async def taken() -> bool:
            keeper = SharedDocuments(tmp_path)
            try:
                return (await keeper.take(await keeper.find(kept_id))).data == b"Halt\n"
            except NotFound:
                return False

        return asyncio.run(taken())

    async def kept_id() -> str:
        keeper = SharedDocuments(tmp_path)
        kept = await keeper.add("", 1, 1.0)
        await keeper.done(kept, TRANSLATED)
        return kept.id

    for _ in range(10):
        one = asyncio.run(kept_id())
        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(take, [one] * 4)) == 1


def test_a_document_whose_process_has_ended_has_failed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ADDS, str(tmp_path)],
        cwd=REPOSITORY,
        timeout=patient(60),
        capture_output=True,
        text=True,
        check=True,
    )

    async def scenario() -> None:
        for _ in range(2):
            found = await SharedDocuments(tmp_path).find(done.stdout.strip())
            assert isinstance(found.failure, Unavailable)
            assert str(found.failure) == "the process that translated it has ended; send it again."

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "failure",
    [
        InvalidRequest("{path} can't be read: {reason}", "file", reason="a caller's text", advice="split it"),
        QuotaExceeded("no {unit} left", 2.5, unit="tokens"),
        NotFound("there is no model {name}", "model", "x", name="x"),
        ServiceError("internal error"),
    ],
)
def test_why_one_failed_is_told_by_another_process_but_to_its_caller_only(
    tmp_path: Path, failure: ServiceError
) -> None:
    async def found() -> ServiceError | None:
        keeper = SharedDocuments(tmp_path)
        kept = await keeper.add("", 1, 1.0)
        await keeper.failed(kept, failure)
        return (await SharedDocuments(tmp_path).find(kept.id)).failure

    told = asyncio.run(found())
    assert type(told) is type(failure)
    assert str(told).removesuffix(".") == str(failure).removesuffix(".")
    assert told.path == failure.path
    assert "caller's text" not in told.redacted
    if isinstance(told, QuotaExceeded):
        assert (told.retry_after_seconds, told.given["unit"]) == (2.5, "tokens")


def test_files_are_for_this_user_only_and_go_when_their_time_is_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = Clock()
        keeper = SharedDocuments(tmp_path, clock)
        kept = await keeper.add("", 1, 1.0)
        await keeper.done(kept, TRANSLATED)
        assert (tmp_path / kept.id).stat().st_mode & 0o777 == 0o600
        killed, new = tmp_path / "killed.part", tmp_path / "new.part"
        for part in (killed, new):
            part.touch()
        long_ago = time.time() - KEPT_SECONDS - 1.0
        os.utime(killed, (long_ago, long_ago))
        clock.now += KEPT_SECONDS
        with pytest.raises(NotFound):  # any call that comes later clears up
            await keeper.find("0" * 32)
        assert documents_in(tmp_path) == ["new.part"]

    asyncio.run(scenario())


def test_nothing_stays_open(tmp_path: Path) -> None:
    async def scenario() -> None:
        keeper = SharedDocuments(tmp_path)
        before = psutil.Process().num_fds()
        done, failed, forgotten = [await keeper.add("", 1, 1.0) for _ in range(3)]
        await keeper.done(done, TRANSLATED)
        await keeper.failed(failed, ServiceError("broken"))
        await keeper.forget(forgotten)
        await keeper.fetch(done)
        assert psutil.Process().num_fds() == before

    asyncio.run(scenario())
