"""Documents that wait to be fetched: by whom, how many and for how long, and what becomes of them on a full disk."""

import asyncio
from pathlib import Path

import psutil
import pytest

from service.domain.call import Call, begin_call
from service.domain.errors import NotFound, Overloaded, QuotaExceeded, ServiceError
from service.jobs.keeper import KEPT_SECONDS, MAX_BYTES, MAX_DOCUMENTS, DocumentKeeper, KeptDocument, making_room
from service.jobs.translation import TranslatedDocument
from tests.clock import Clock
from tests.programs import output_of

# Adds two documents, and fails to keep their translations, a small and a large one, and to add another; why is kept.
FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from service.domain.errors import ServiceError
from service.jobs.keeper import DocumentKeeper
from service.jobs.translation import TranslatedDocument

async def main():
    keeper = DocumentKeeper(lambda: Path(sys.argv[1]))
    kept = {num_bytes: await keeper.add("api", "", 1, 600.0) for num_bytes in (100, 100_000)}
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
    works = [keeper.done(each, TranslatedDocument("a", "b", bytes(size), (), 1)) for size, each in kept.items()]
    for work in (*works, keeper.add("api", "", 1, 600.0)):
        try:
            await work
        except ServiceError as error:
            print(error)
    for each in kept.values():
        await keeper.failed(each, ServiceError("lost"))
        print((await keeper.find("api", each.id)).failure)

asyncio.run(main())
"""
API = "api"
HALT = TranslatedDocument("ä.de.txt", "text/plain", b"Halt\n", ("a note",), 4)


def documents_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keeper(tmp_path: Path, clock: Clock) -> DocumentKeeper:
    return DocumentKeeper(lambda: tmp_path, clock)


async def add(
    keeper: DocumentKeeper, owner: str = "", num_bytes: int = 1, caller: str = "", most_seconds: float = 1.0
) -> KeptDocument:
    begin_call(Call(origin=(caller, object())))
    return await keeper.add(API, owner, num_bytes, most_seconds)


async def test_a_translation_comes_back_until_it_is_taken(keeper: DocumentKeeper, tmp_path: Path) -> None:
    kept = await add(keeper, "alice")
    found = await keeper.find(API, kept.id, "alice")
    assert (found.num_characters, found.failure) == (None, None)
    await keeper.done(kept, HALT)
    for _ in range(2):
        found = await keeper.find(API, kept.id, "alice")
        assert (found.num_characters, found.key) == (4, kept.key)
        fetched = await keeper.fetch(found)
        assert (fetched.name, fetched.content_type, fetched.data) == ("ä.de.txt", "text/plain", b"Halt\n")
        assert (list(fetched.notes), fetched.num_characters) == (["a note"], 4)
        assert (await keeper.find(API, kept.id, "alice")).was_fetched
    taken = await asyncio.gather(*(keeper.take(found) for _ in range(4)), return_exceptions=True)
    assert [each.data for each in taken if isinstance(each, TranslatedDocument)] == [b"Halt\n"]
    assert sum(isinstance(each, NotFound) for each in taken) == 3
    for again in (keeper.take, keeper.fetch):
        with pytest.raises(NotFound):
            await again(kept)
    assert documents_in(tmp_path) == []


async def test_files_are_for_this_user_and_go_in_time(keeper: DocumentKeeper, clock: Clock, tmp_path: Path) -> None:
    kept = await add(keeper)
    await keeper.done(kept, HALT)
    assert (tmp_path / kept.id).stat().st_mode & 0o777 == 0o600
    clock.now += KEPT_SECONDS
    with pytest.raises(NotFound):  # any call that comes later clears up
        await keeper.find(API, "0" * 32)
    assert documents_in(tmp_path) == []


async def test_a_failure_is_told_as_often_as_it_is_asked_for(keeper: DocumentKeeper, tmp_path: Path) -> None:
    kept = await add(keeper)
    await keeper.failed(kept, QuotaExceeded("no {unit} left", 2.5, unit="tokens"))
    for _ in range(3):
        failure = (await keeper.find(API, kept.id)).failure
        assert failure is not None
        with pytest.raises(QuotaExceeded, match="tokens") as raised:
            raise failure
        assert len(raised.traceback) == 1  # what earlier calls have added is gone
    assert documents_in(tmp_path) == []


async def test_calls_at_the_same_time_keep_to_the_limits(keeper: DocumentKeeper, tmp_path: Path) -> None:
    wanted = [keeper.add(API, "", 2**20, 1.0) for _ in range(140)]
    found = await asyncio.gather(*wanted, return_exceptions=True)
    assert sum(isinstance(each, Overloaded) for each in found) == 140 - 64  # half of 128 MiB
    assert len(documents_in(tmp_path)) == 64


async def test_nothing_stays_open(keeper: DocumentKeeper) -> None:
    before = psutil.Process().num_fds()
    done, failed, forgotten = [await add(keeper) for _ in range(3)]
    await keeper.done(done, HALT)
    await keeper.failed(failed, ServiceError("broken"))
    await keeper.forget(forgotten)
    await keeper.fetch(done)
    assert psutil.Process().num_fds() == before


async def test_only_the_owner_finds_a_document_by_its_api(keeper: DocumentKeeper) -> None:
    kept = await add(keeper, "alice")
    assert (await keeper.find(API, kept.id, "alice")).id == kept.id
    for api, kept_id, owner in (
        *((API, kept.id, "bob"), (API, kept.id, ""), (API, "x", "alice")),
        *((API, "../" + kept.id, "alice"), ("b", kept.id, "alice")),
    ):
        with pytest.raises(NotFound, match="there is no such document; translations are kept for 10 minutes"):
            await keeper.find(api, kept_id, owner)


async def test_ids_and_keys_can_not_be_guessed(keeper: DocumentKeeper) -> None:
    kept = [await add(keeper) for _ in range(100)]
    assert len({each.id for each in kept} | {each.key for each in kept}) == 200
    assert all(len(each.id) == 32 and len(each.key) == 64 for each in kept)


async def test_they_are_kept_for_a_while(keeper: DocumentKeeper, clock: Clock) -> None:
    kept, failed = [await add(keeper, most_seconds=600.0) for _ in range(2)]
    clock.now += 600.0
    await keeper.done(kept, HALT)
    await keeper.failed(failed, ServiceError("broken."))
    clock.now += KEPT_SECONDS - 1.0
    assert (await keeper.find(API, kept.id)).num_characters == 4
    assert str((await keeper.find(API, failed.id)).failure) == "broken."
    clock.now += 1.0
    for each in (kept, failed):
        with pytest.raises(NotFound):
            await keeper.find(API, each.id)


async def test_a_callers_new_ones_replace_its_oldest(keeper: DocumentKeeper, clock: Clock, tmp_path: Path) -> None:
    kept = [await add(keeper, num_bytes=2**20, caller="alice") for _ in range(64)]
    with pytest.raises(Overloaded, match="your documents being translated: 64, 64 MiB in total; allowed: 128"):
        await add(keeper, num_bytes=2**20, caller="alice")
    other = await add(keeper, num_bytes=2**20, caller="bob")
    for each in (kept[3], kept[1]):
        await keeper.done(each, TranslatedDocument("a", "b", bytes(2**20), (), 1))
        clock.now += 1.0
    for _ in range(2):
        await keeper.forget(kept[0])
    new = await add(keeper, num_bytes=2**20, caller="alice")
    left = {each.id for each in (*kept, other, new)} - {kept[0].id, kept[3].id}
    assert set(documents_in(tmp_path)) == left


def test_a_disk_that_is_full_is_told(tmp_path: Path) -> None:
    """The limit of the size of files is in force for the whole process, so it is one of its own."""
    told = "the server can't keep documents: File too large; its operator has to free or"
    *failed, first, second = output_of(FULL_DISK, tmp_path).splitlines()
    assert [line[: len(told)] for line in failed] == [told] * 3
    assert (first, second) == ("lost", "lost")
    assert documents_in(tmp_path) == []


MIB = 2**20
IN_WORK, DONE, FETCHED, FAILED = "in work", "done", "fetched", "failed"


def kept(state: str, caller: str, number: int = 1, num_bytes: int = 1, since: float = 0.0) -> list[KeptDocument]:
    """Return documents of a caller, each a second younger than the one before."""
    found = []
    for index in range(number):
        document = KeptDocument("api", "", caller, num_bytes, since + index)
        if state == FAILED:
            document.failed(ServiceError("broken"), since + index)
        elif state != IN_WORK:
            document.translated(TranslatedDocument("a", "b", bytes(num_bytes), (), 1), since + index)
            document.was_fetched = state == FETCHED
        found.append(document)
    return found


def test_a_caller_has_half_and_its_own_oldest_make_room() -> None:
    own = kept(DONE, "alice", MAX_DOCUMENTS // 2)
    assert making_room(own, "alice", 1) == own[:1]
    assert making_room(own[1:], "alice", 1) == []
    assert making_room([*kept(IN_WORK, "alice"), *own], "alice", 1) == own[:2]


def test_there_is_always_something_left_for_another_caller() -> None:
    every: list[KeptDocument] = []
    numbers = []
    for caller in "abcdefgh":
        before = len(every)
        while True:
            try:
                assert making_room(every, caller, 1) == []
            except Overloaded:
                break
            every += kept(IN_WORK, caller)
        numbers.append(len(every) - before)
    assert numbers == [128, 64, 32, 16, 8, 4, 2, 1]
    assert making_room(every, "i", 1) == []


def test_bytes_are_shared_like_numbers() -> None:
    own = kept(DONE, "alice", 2, 30 * MIB)
    assert making_room(own, "alice", 4 * MIB) == []
    assert making_room(own, "alice", 32 * MIB) == own[:1]
    assert making_room(own, "bob", 32 * MIB) == []
    with pytest.raises(Overloaded, match="your documents being translated: 0, 0 MiB in total"):
        making_room([*own, *kept(DONE, "carol", 1, 20 * MIB)], "bob", 32 * MIB)


@pytest.mark.parametrize("state", [FETCHED, FAILED])
def test_those_that_nobody_waits_for_take_what_is_left_over(state: str) -> None:
    others, own = kept(state, "bob", 200), kept(state, "alice", 55, since=1000.0)
    wanted = kept(DONE, "carol")
    every = [*others, *own, *wanted]
    assert len(every) == MAX_DOCUMENTS
    assert making_room(every[1:], "alice", 1) == []
    assert making_room(every, "alice", 1) == own[:1]
    assert making_room(every, "dave", 1) == others[:1]


def test_their_bytes_go_when_they_are_needed() -> None:
    fetched = kept(FETCHED, "bob", 4, MAX_BYTES // 4)
    assert making_room(fetched, "alice", 33 * MIB) == fetched[:2]
