"""Lines of a source by position, for those who report where a text is."""


class Lines:
    """The lines of a source, whose positions are asked for in about their order."""

    def __init__(self, source: str, part: str = "") -> None:
        self._source = source
        self._part = part
        self._counted = 0, 1  # a position, and its line

    def place(self, position: int) -> str:
        """Return the line of a position, such as "line 3"; fast if it is near the one before."""
        counted, line = self._counted
        line += self._source.count("\n", counted, position) - self._source.count("\n", position, counted)
        self._counted = position, line
        return f"{self._part}, line {line}" if self._part else f"line {line}"
