"""Recent errors are bounded. `test_errors` and `test_quoted` check that they omit customers' input."""

from service.observe.recent_errors import NUM_KEPT, RecentErrors


def shown(message: str) -> str:
    errors = RecentErrors()
    errors.note("id", "method", "INVALID_ARGUMENT", message)
    return errors.latest()[0].message


def test_the_last_are_kept_and_the_newest_is_first() -> None:
    errors = RecentErrors()
    for number in range(NUM_KEPT + 3):
        errors.note(str(number), "method", "INTERNAL", "message")
    assert [error.request_id for error in errors.latest()] == [str(n) for n in range(NUM_KEPT + 2, 2, -1)]


def test_a_message_is_bounded() -> None:
    assert len(shown("long " * 1000)) == 300
