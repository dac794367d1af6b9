"""The requirements for every error message."""

_MAX_PROBLEM = 2000  # characters of a message


def check_message(problem: Exception | str, most: int = _MAX_PROBLEM) -> None:
    """Check that a message is one line, not too long, that can be written to a log."""
    message = str(problem)
    assert message and len(message) <= most, len(message)
    assert len(message.splitlines()) == 1, message
    message.encode()
