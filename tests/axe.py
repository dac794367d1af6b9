"""axe-core, which finds faults that keep people with disabilities out of a page; `make build/axe/installed` gets it."""

from tests.browser import Browser
from tests.servers import REPOSITORY
from tests.tools import built_file

_SCRIPT = REPOSITORY / "build" / "axe" / "axe_playwright_python" / "axe.min.js"
_RUN = """
const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
return axe.run(document, { runOnly: tags }).then(({ violations }) => violations.flatMap(
  ({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`)));
"""


def findings(window: Browser) -> list[str]:
    """Return what axe finds in the page as it is now: rule, element and what to mend."""
    if not window.run("return 'axe' in window"):
        window.run(built_file(_SCRIPT, "build/axe/installed").read_text(encoding="utf-8"))
    found: list[str] = window.run(_RUN)
    return found
