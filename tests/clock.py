"""A clock that tests advance."""


class Clock:
    """A time in seconds that changes only when a test moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now
