"""How large an answer becomes, counted before it is built."""

from service.domain.errors import TooLong
from service.domain.translation import ENTRY_CHARACTERS


class AnswerSize:
    """Adds up what one step on the way to an answer makes of it. Each step counts for itself, the same things."""

    def __init__(self, max_characters: int, num_hypotheses: int = 1) -> None:
        """What is counted comes in so many hypotheses."""
        self._max_characters = max_characters
        self._num_hypotheses = num_hypotheses
        self._num_characters = 0

    def add(self, num_characters: int, num_entries: int = 0) -> None:
        """Count characters of text, and entries of numbers: segments and links of alignments.

        Raises:
            TooLong: it is too much by now.
        """
        self._num_characters += num_characters * self._num_hypotheses + num_entries * ENTRY_CHARACTERS
        if self._num_characters > self._max_characters:
            raise TooLong(
                f"the answer would have more than {self._max_characters} characters, the most that is allowed per call "
                "(all hypotheses together; each segment and link of an alignment counts as "
                f"{ENTRY_CHARACTERS}). Send less text per call, shorter terms, or ask for fewer hypotheses.",
                "texts",
            )
