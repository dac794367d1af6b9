"""The translation page on the port of callers."""

from collections.abc import Sequence
from functools import partial

from service.faces.http.answers import failure
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.routes import Route
from service.faces.page.document import Calls, translation_page

_NAVIGATION = '<nav aria-label="More"><a href="v1/docs">API</a></nav>'
# The page changes with the server's version: a browser asks each time.
_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class TranslationPage:
    """The page; it needs no key, its calls do where others do."""

    def __init__(self) -> None:
        self._answer = translation_page(Calls.V1, _NAVIGATION).answer(_HEADERS)

    def routes(self) -> Sequence[Route]:
        route = partial(Route, failure=failure, queues=False)
        return (route("GET", "/", "page", self.page, needs_key=False),)

    async def page(self, request: HttpRequest) -> HttpAnswer:
        return self._answer
