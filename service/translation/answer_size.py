"""Size of an answer, counted before it is built."""

from service.domain.errors import TooLong
from service.domain.translation import ENTRY_CHARACTERS


class AnswerSize:
    """Counter of an answer's size in one processing step. Each step has its own counter of the same contents."""

    def __init__(self, max_characters: int, num_hypotheses: int = 1) -> None:
        """Multiply the counted characters by `num_hypotheses`."""
        self._max_characters = max_characters
        self._num_hypotheses = num_hypotheses
        self.num_characters = 0  # counted so far

    def add(self, num_characters: int, num_entries: int = 0) -> None:
        """Count characters of text, and entries: segments and alignment links.

        Raises:
            TooLong: the answer exceeds the limit.
        """
        self.num_characters += num_characters * self._num_hypotheses + num_entries * ENTRY_CHARACTERS
        if self.num_characters > self._max_characters:
            raise TooLong(
                "the answer would have more than {most} characters, the limit per call (all hypotheses together; each "
                "segment and link of an alignment counts as {entry})",
                "texts",
                most=self._max_characters,
                entry=ENTRY_CHARACTERS,
                advice="send less text per call, shorter terms, or ask for fewer hypotheses",
            )
