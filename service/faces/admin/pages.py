"""The operators' pages: the one that translates, and the status page behind its second tab."""

from pathlib import Path

from service.faces.page.document import Calls, Page, built, read, translation_page

_FOLDER = Path(__file__).parent / "page"
_TABS = (("./", "Translate"), ("status", "Status"))


def operators_page() -> Page:
    """Build the page that translates, by the operators' calls."""
    return translation_page(Calls.OPERATORS, _navigation("Translate"))


def status_page() -> Page:
    """Build the status page."""
    return built(
        _read("status.html"),
        [read("theme.css"), _read("uPlot.min.css"), _read("status.css")],
        [_read("uPlot.iife.min.js"), _read("status.js")],
        {
            "licence": f"<!--\nCharts are drawn by uPlot.\n\n{_read('uPlot.LICENSE')}\n-->",
            "navigation": _navigation("Status"),
        },
    )


def _navigation(current: str) -> str:
    marks = {name: ' aria-current="page"' if name == current else "" for _, name in _TABS}
    links = (f'<a href="{path}"{marks[name]}>{name}</a>' for path, name in _TABS)
    return f'<nav aria-label="Pages">{"".join(links)}</nav>'


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
