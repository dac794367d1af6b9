"""Google Cloud Translation's API."""

from collections.abc import Sequence

from service.faces.google.methods import GoogleMethods
from service.faces.google.v2 import V2
from service.faces.google.v3 import V3
from service.faces.http.routes import Route
from service.translation.translator import Translator


class Google:
    """Google Cloud Translation's API, in both versions. All methods belong to the event loop's thread."""

    def __init__(self, translator: Translator, default_deadline_seconds: float) -> None:
        """Give calls `default_deadline_seconds`."""
        methods = GoogleMethods(translator)
        self._v2 = V2(translator, methods, default_deadline_seconds)
        self._v3 = V3(methods, default_deadline_seconds)

    def routes(self) -> Sequence[Route]:
        return (*self._v2.routes(), *self._v3.routes())
