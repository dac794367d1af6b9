"""Documents that wait to be fetched: by whom, for how long, and how many."""

import pytest

from service.domain.errors import NotFound, Overloaded, ServiceError
from service.faces.http.documents.kept import KEPT_SECONDS, KeptDocuments
from service.faces.http.documents.translation import TranslatedDocument
from tests.clock import Clock


def translated(num_bytes: int) -> TranslatedDocument:
    return TranslatedDocument("a.de.txt", "text/plain", bytes(num_bytes), (), 1)


def test_only_the_owner_finds_a_document() -> None:
    documents = KeptDocuments()
    kept = documents.add("alice", 1, 1.0)
    assert documents.find(kept.id, "alice") is kept
    for document_id, owner in ((kept.id, "bob"), (kept.id, ""), ("x", "alice")):
        with pytest.raises(NotFound, match="there is no such document; translations are kept for 10 minutes"):
            documents.find(document_id, owner)


def test_ids_and_keys_can_not_be_guessed() -> None:
    documents = KeptDocuments()
    kept = [documents.add("", 1, 1.0) for _ in range(100)]
    assert len({each.id for each in kept} | {each.key for each in kept}) == 200
    assert all(len(each.id) == 32 and len(each.key) == 64 for each in kept)


def test_they_are_kept_for_a_while() -> None:
    clock = Clock()
    documents = KeptDocuments(clock)
    kept, failed = documents.add("", 1, 600.0), documents.add("", 1, 600.0)
    clock.now += 600.0
    documents.done(kept, translated(3))
    documents.failed(failed, ServiceError("broken."))
    clock.now += KEPT_SECONDS - 1.0
    assert documents.find(kept.id).translated == translated(3)
    assert documents.find(failed.id).failure is not None
    clock.now += 1.0
    for each in (kept, failed):
        with pytest.raises(NotFound):
            documents.find(each.id)


def test_so_many_bytes() -> None:
    clock = Clock()
    documents = KeptDocuments(clock)
    first = documents.add("", 100 * 2**20, 1.0)
    with pytest.raises(Overloaded, match="1 documents of 100 MiB wait to be fetched"):
        documents.add("", 29 * 2**20, 1.0)
    documents.done(first, translated(2**20))
    second = documents.add("", 120 * 2**20, 1.0)
    documents.failed(second, ServiceError("broken."))
    documents.add("", 120 * 2**20, 1.0)


def test_fetched_ones_make_room() -> None:
    documents = KeptDocuments()
    kept = [documents.add("", 1, 1.0) for _ in range(256)]
    for each in (kept[3], kept[1]):
        documents.done(each, translated(1))
        documents.fetched(each)
    documents.add("", 1, 1.0)
    with pytest.raises(NotFound):
        documents.find(kept[1].id)
    assert documents.find(kept[3].id) is kept[3]
    documents.add("", 1, 1.0)
    with pytest.raises(Overloaded, match="256 documents"):
        documents.add("", 1, 1.0)


def test_so_many_documents() -> None:
    clock = Clock()
    documents = KeptDocuments(clock)
    kept = [documents.add("", 1, 1.0) for _ in range(256)]
    with pytest.raises(Overloaded, match="256 documents"):
        documents.add("", 1, 1.0)
    documents.forget(kept[0])
    documents.forget(kept[0])
    documents.add("", 1, 1.0)
    clock.now += KEPT_SECONDS + 1.0
    documents.add("", 1, 1.0)
