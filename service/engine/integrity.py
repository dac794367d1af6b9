"""Consistency checks of the engine's state; they run only in tests."""


class IntegrityError(AssertionError):
    """The engine's state is inconsistent; the message says how."""


def expect(holds: object, problem: str) -> None:
    """Check that a condition holds. Where there are many, an `if` is faster: `problem` is made regardless."""
    if not holds:
        raise IntegrityError(problem)
