"""Documents that wait to be fetched, in memory and in files: by whom, for how long, and how many."""

import asyncio
from pathlib import Path

import pytest

from service.domain.errors import NotFound, Overloaded, ServiceError
from service.faces.http.documents.kept import KEPT_SECONDS, DocumentKeeper, DocumentsInMemory, KeptDocument
from service.faces.http.documents.shared import SharedDocuments
from service.faces.http.documents.translation import TranslatedDocument
from tests.clock import Clock

MIB = 2**20


def translated(num_bytes: int) -> TranslatedDocument:
    return TranslatedDocument("ä.de.txt", "text/plain", b"\n" * num_bytes, ("a note",), 7)


class Keeper:
    """A keeper, called without an event loop."""

    def __init__(self, keeper: DocumentKeeper, clock: Clock) -> None:
        self.clock = clock
        self._keeper = keeper

    def add(self, owner: str = "", num_bytes: int = 1, most_seconds: float = 1.0) -> KeptDocument:
        return asyncio.run(self._keeper.add(owner, num_bytes, most_seconds))

    def done(self, kept: KeptDocument, translation: TranslatedDocument) -> None:
        asyncio.run(self._keeper.done(kept, translation))

    def failed(self, kept: KeptDocument, failure: ServiceError) -> None:
        asyncio.run(self._keeper.failed(kept, failure))

    def find(self, document_id: str, owner: str = "") -> KeptDocument:
        return asyncio.run(self._keeper.find(document_id, owner))

    def fetch(self, kept: KeptDocument) -> TranslatedDocument:
        return asyncio.run(self._keeper.fetch(kept))

    def take(self, kept: KeptDocument) -> TranslatedDocument:
        return asyncio.run(self._keeper.take(kept))

    def forget(self, kept: KeptDocument) -> None:
        asyncio.run(self._keeper.forget(kept))


@pytest.fixture(params=["memory", "files"])
def keeper(request: pytest.FixtureRequest, tmp_path: Path) -> Keeper:
    clock = Clock()
    return Keeper(DocumentsInMemory(clock) if request.param == "memory" else SharedDocuments(tmp_path, clock), clock)


def test_a_translation_comes_back_as_it_was(keeper: Keeper) -> None:
    kept = keeper.add()
    assert (keeper.find(kept.id).num_characters, keeper.find(kept.id).failure) == (None, None)
    keeper.done(kept, translated(3))
    assert keeper.find(kept.id).num_characters == 7
    assert keeper.find(kept.id).key == kept.key
    for _ in range(2):
        fetched = keeper.fetch(kept)
        assert (fetched.name, fetched.content_type, fetched.data) == ("ä.de.txt", "text/plain", b"\n\n\n")
        assert (list(fetched.notes), fetched.num_characters) == (["a note"], 7)


def test_one_that_is_taken_is_taken_once(keeper: Keeper) -> None:
    kept = keeper.add()
    keeper.done(kept, translated(3))
    assert keeper.take(kept).data == b"\n\n\n"
    assert not _is_there(keeper, kept)
    for again in (keeper.take, keeper.fetch):
        with pytest.raises(NotFound):
            again(kept)


def test_only_the_owner_finds_a_document(keeper: Keeper) -> None:
    kept = keeper.add("alice")
    assert keeper.find(kept.id, "alice").id == kept.id
    for document_id, owner in ((kept.id, "bob"), (kept.id, ""), ("x", "alice"), ("../" + kept.id, "alice")):
        with pytest.raises(NotFound, match="there is no such document; translations are kept for 10 minutes"):
            keeper.find(document_id, owner)


def test_ids_and_keys_can_not_be_guessed(keeper: Keeper) -> None:
    kept = [keeper.add() for _ in range(100)]
    assert len({each.id for each in kept} | {each.key for each in kept}) == 200
    assert all(len(each.id) == 32 and len(each.key) == 64 for each in kept)


def test_they_are_kept_for_a_while(keeper: Keeper) -> None:
    kept, failed = keeper.add(most_seconds=600.0), keeper.add(most_seconds=600.0)
    keeper.clock.now += 600.0
    keeper.done(kept, translated(3))
    keeper.failed(failed, ServiceError("broken."))
    keeper.clock.now += KEPT_SECONDS - 1.0
    assert keeper.find(kept.id).num_characters == 7
    assert str(keeper.find(failed.id).failure) == "broken."
    keeper.clock.now += 1.0
    for each in (kept, failed):
        with pytest.raises(NotFound):
            keeper.find(each.id)


def test_so_many_bytes(keeper: Keeper) -> None:
    first = keeper.add(num_bytes=100 * MIB)
    with pytest.raises(Overloaded, match="1 documents of 100 MiB wait to be fetched"):
        keeper.add(num_bytes=29 * MIB)
    keeper.done(first, translated(MIB))
    second = keeper.add(num_bytes=120 * MIB)
    keeper.failed(second, ServiceError("broken."))
    keeper.add(num_bytes=120 * MIB)


def test_fetched_ones_make_room(keeper: Keeper) -> None:
    kept = [keeper.add() for _ in range(256)]
    for each in (kept[3], kept[1]):
        keeper.done(each, translated(1))
        keeper.fetch(each)
        keeper.clock.now += 1.0
    keeper.add()
    assert [each for each in kept if not _is_there(keeper, each)] == [kept[3]]
    keeper.add()
    assert not _is_there(keeper, kept[1])
    with pytest.raises(Overloaded, match="256 documents"):
        keeper.add()


def test_so_many_documents(keeper: Keeper) -> None:
    kept = [keeper.add() for _ in range(256)]
    with pytest.raises(Overloaded, match="256 documents"):
        keeper.add()
    keeper.forget(kept[0])
    keeper.forget(kept[0])
    keeper.add()
    keeper.clock.now += KEPT_SECONDS + 1.0
    keeper.add()


def _is_there(keeper: Keeper, kept: KeptDocument) -> bool:
    try:
        keeper.find(kept.id)
    except NotFound:
        return False
    return True
