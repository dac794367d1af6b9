"""How many documents are kept for callers who fetch them later, and which of them leave first."""

import pytest

from service.domain.errors import Overloaded, ServiceError
from service.jobs.keeper import MAX_BYTES, MAX_DOCUMENTS, KeptDocument, making_room
from service.jobs.translation import TranslatedDocument

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


def test_those_in_work_make_no_room() -> None:
    own = kept(IN_WORK, "alice", MAX_DOCUMENTS // 2)
    with pytest.raises(Overloaded) as raised:
        making_room(own, "alice", 1)
    assert str(raised.value) == (
        "128 documents of yours, of 0 MiB, are being translated; allowed is 128 of 64 MiB. Try again later."
    )


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
    with pytest.raises(Overloaded, match="0 documents of yours, of 0 MiB"):
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
