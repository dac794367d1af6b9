"""A clock that tests turn."""


class Clock:
    """Seconds that stand still unless a test moves them."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now
