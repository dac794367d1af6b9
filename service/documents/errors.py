"""Errors of documents, each one line: what is wrong, where, and what to do."""


class DocumentError(Exception):
    """A document that can't be read as what its name says; `place` is where, such as "line 3", or empty."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.place = place


class UnknownFormat(DocumentError):
    """A name whose ending is not that of a known format."""
