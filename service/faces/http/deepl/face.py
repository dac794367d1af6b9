"""DeepL's API."""

from collections.abc import Sequence

from service.faces.http.routes import Route
from service.translation.translator import Translator


class DeepL:
    """DeepL's API. All methods belong to the event loop's thread."""

    def __init__(self, translator: Translator, default_deadline_seconds: float) -> None:
        """Give calls `default_deadline_seconds`."""
        self._translator = translator
        self._default_deadline_seconds = default_deadline_seconds

    def routes(self) -> Sequence[Route]:
        """Return the routes of this API."""
        return ()
