"""What it means that the engine's books contradict each other; they are compared only in tests."""


class IntegrityError(AssertionError):
    """Two of the engine's books contradict each other; the message names what is wrong."""


def expect(holds: object, problem: str) -> None:
    """Go on if something holds.

    Raises:
        IntegrityError: it does not.
    """
    if not holds:
        raise IntegrityError(problem)
