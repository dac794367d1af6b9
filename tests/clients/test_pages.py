"""The pages in a real browser, as visitors and operators see them: translation, status, and reference of the API."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dragoman_client import Client, ClientError, Options
from tests.axe import findings
from tests.browser import IN_EACH_LOOK, Browser, browser, like
from tests.key_files import ALICE, write_keys
from tests.servers import REPOSITORY, ServerProcess, distinct_texts, eventually, http_get, samples
from tests.tiny_bundle import write_tiny_bundle

QUESTION = "Where is the train station?"
LONG = "My brother lives in a small house near the sea. " * 6
CHOOSE = """
const field = document.getElementById(arguments[0]);
field.value = arguments[1];
field.dispatchEvent(new Event("change"));
"""
CONTROL = 2  # as DevTools numbers modifiers
CENTRE = """
const box = document.querySelectorAll(arguments[0])[arguments[1]].getBoundingClientRect();
return [box.x + box.width / 2, box.y + box.height / 2];
"""
# Notes each text that the result has while it grows.
WATCH = """
window.grown = [];
const result = document.querySelector("#result");
new MutationObserver(() => { if (result.dataset.state === "growing") window.grown.push(result.textContent); })
  .observe(result, { childList: true });
"""
# Both have the same page; the operators' answers come whole, and from elsewhere.
ON_BOTH_PORTS = pytest.mark.parametrize("visit", ["callers", "operators"], indirect=True)
MARKED = "return [...document.querySelectorAll(`${arguments[0]} .marked`)].map((each) => each.textContent)"


@dataclass(frozen=True)
class Visit:
    """The page, as one port serves it."""

    window: Browser
    url: str
    server: ServerProcess
    streams: bool

    def open(self) -> None:
        self.window.open(self.url)
        eventually(lambda: self.window.run("return document.querySelector('#into').value") != "")

    def choose(self, field: str, value: str) -> None:
        self.window.run(CHOOSE, field, value)

    def type(self, text: str) -> None:
        """Replace the text as a visitor does."""
        self.window.run("const t = document.querySelector('#text'); t.focus(); t.select()")
        self.window.command("Input.insertText", text=text)

    def press(self, key: str, modifiers: int = 0) -> None:
        for kind in ("keyDown", "keyUp"):
            self.window.command("Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=modifiers)

    def click(self, selector: str) -> None:
        self.window.run("document.querySelector(arguments[0]).click()", selector)

    def hover(self, selector: str, number: int = 0) -> None:
        x, y = self.window.run(CENTRE, selector, number)
        self.window.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    @property
    def state(self) -> str:
        return str(self.window.run("return document.querySelector('#result').dataset.state"))

    def translated(self, text: str) -> str:
        """Type a text and return its translation."""
        self.type(text)
        return self.settled()

    def settled(self) -> str:
        eventually(lambda: self.state == "done")
        return self.window.text("#result")

    def marked(self, place: str) -> list[str]:
        return list(self.window.run(MARKED, place))

    def expected(self, text: str, **settings: object) -> str:
        with Client(self.server.address) as client:
            return client.translate([text], "en", "de", **settings)[0].text  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Serve two of the shipped models, and one of random weights between French and Italian, as languages to swap.

    There is a glossary, too.
    """
    models = tmp_path_factory.mktemp("models")
    for name in ("en-de", "en-hi"):
        shutil.copytree(REPOSITORY / "models" / name, models / name)
    write_tiny_bundle(models / "tiny" / "1", among="fr it")
    glossaries = tmp_path_factory.mktemp("glossaries")
    (glossaries / "stations.en-de.tsv").write_text("train station\tHaltepunkt\n", encoding="utf-8")
    with ServerProcess(models, "--glossaries", str(glossaries), has_http=True) as process:
        yield process


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as window:
        yield window


@pytest.fixture(params=["callers", pytest.param("operators", marks=pytest.mark.full)])
def visit(request: pytest.FixtureRequest, server: ServerProcess, window: Browser) -> Visit:
    streams = request.param == "callers"
    url = f"{server.http_url}/" if streams else f"http://127.0.0.1:{server.admin_port}/"
    visit = Visit(window, url, server, streams)
    visit.open()
    return visit


def test_a_visitor_finds_the_languages(visit: Visit) -> None:
    sources, targets = (
        visit.window.run("return [...document.querySelector(arguments[0]).options].map((each) => each.text)", each)
        for each in ("#from", "#into")
    )
    assert sources == ["Detect language", "English", "French", "Italian"]
    assert targets == ["French", "German", "Hindi", "Italian"]
    visit.choose("from", "en")
    options = visit.window.run("return [...document.querySelector('#into').options].map((each) => each.value)")
    assert options == ["de", "hi"]


@ON_BOTH_PORTS
def test_what_is_typed_is_translated(visit: Visit) -> None:
    visit.choose("into", "de")
    assert visit.translated(QUESTION) == visit.expected(QUESTION) == "Wo ist der Bahnhof?"
    assert "English, detected" in visit.window.text("#detected")
    assert visit.window.text("#count") == "27 characters"
    assert re.fullmatch(r"en-de 1 · licence CC-BY-4\.0 · [\d,]+ ms · request [0-9a-f]{16}", visit.window.text("#facts"))
    assert visit.window.text("#spoken") == "Wo ist der Bahnhof?"  # what a screen reader says
    assert visit.window.run("return document.querySelector('#result').lang") == "de"
    visit.type(" ")
    eventually(lambda: visit.state == "empty")
    assert visit.window.text("#facts") == ""


INTO = "return document.querySelector('#into').value"


@ON_BOTH_PORTS
def test_a_text_that_is_not_translated_into_the_first_target_is_translated_into_another(visit: Visit) -> None:
    assert visit.window.run(INTO) == "fr"
    visit.type(QUESTION)
    eventually(lambda: visit.state == "done" and visit.window.text("#result") == "Wo ist der Bahnhof?")
    assert visit.window.run(INTO) == "de"
    assert visit.window.text("#said") == (
        "The text seems to be in English, which is not translated into French here. "
        "It is translated into German instead."
    )
    visit.choose("into", "fr")  # the visitor's own choice stays
    eventually(lambda: visit.window.text("#said").endswith("French here. Translate into German"))
    assert visit.window.run(INTO) == "fr"
    assert visit.window.text("#result") == QUESTION


@ON_BOTH_PORTS
def test_a_text_in_the_target_language_stays_and_is_said_to_be(visit: Visit) -> None:
    visit.choose("into", "de")
    german = "Wo ist der Bahnhof, bitte?"
    assert visit.translated(german) == german
    assert visit.window.text("#said") == "The text is in German already."  # and German is translated into nothing
    assert re.fullmatch(r"[\d,]+ ms · request [0-9a-f]{16}", visit.window.text("#facts"))
    visit.choose("into", "fr")
    visit.type("Où est la gare, s'il vous plaît ?")
    eventually(lambda: visit.window.text("#said") == "The text is in French already. Translate into Italian")
    visit.click("#said button")
    eventually(lambda: visit.state == "done" and visit.window.run(INTO) == "it")
    assert "already" not in visit.window.text("#said")


@ON_BOTH_PORTS
def test_the_result_grows(visit: Visit) -> None:
    visit.choose("from", "en")
    visit.window.run(WATCH)
    translation = visit.translated(LONG)
    assert translation == visit.expected(LONG)
    grown = visit.window.run("return window.grown")
    if visit.streams:
        assert len(grown) > 5
        assert all(translation.startswith(part) for part in grown)
    else:
        assert grown == []


@ON_BOTH_PORTS
def test_a_changed_text_aborts_the_call_of_the_old_one(visit: Visit) -> None:
    visit.choose("from", "en")
    visit.type(LONG * 20)
    visit.press("Enter", CONTROL)
    if visit.streams:
        eventually(lambda: visit.state == "growing")
    assert visit.translated(QUESTION) == "Wo ist der Bahnhof?"
    assert visit.window.text("#error") == ""
    if visit.streams:
        labels = r'\{code="CANCELLED",kind="stream",method="http/v1/translate_stream"\}'
        eventually(lambda: sum(samples(visit.server.get("/metrics")[2], f"dragoman_requests_total{labels}")) >= 1)


def test_control_and_enter_translate_at_once(visit: Visit) -> None:
    visit.choose("from", "en")
    visit.window.run("document.querySelector('#text').value = arguments[0]", QUESTION)  # no event: nothing is awaited
    visit.window.run("document.querySelector('#text').focus()")
    visit.press("Enter", CONTROL)
    assert visit.settled() == "Wo ist der Bahnhof?"
    assert visit.window.run("return document.querySelector('#text').value") == QUESTION


def test_languages_swap_with_their_texts(visit: Visit) -> None:
    visit.choose("from", "fr")
    first = visit.translated("keys window")
    visit.click("#swap")
    visit.settled()
    values = visit.window.run("return ['from', 'into', 'text'].map((id) => document.getElementById(id).value)")
    assert values == ["it", "fr", first]


def test_languages_that_no_model_swaps_stay(visit: Visit) -> None:
    visit.choose("from", "en")
    visit.translated(QUESTION)
    assert visit.window.run("return document.querySelector('#swap').ariaDisabled") == "true"
    visit.click("#swap")
    assert visit.window.text("#said") == "No model here translates from German into English."
    assert visit.window.run("return document.querySelector('#from').value") == "en"


def test_the_translation_is_copied(visit: Visit) -> None:
    visit.choose("from", "en")
    permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    visit.window.command("Browser.grantPermissions", permissions=permissions, origin=visit.url.rstrip("/"))
    visit.translated(QUESTION)
    visit.click("#copy")
    eventually(lambda: visit.window.text("#said") == "Copied.")
    assert visit.window.run("return navigator.clipboard.readText()") == "Wo ist der Bahnhof?"


def test_other_translations_come_on_demand(visit: Visit) -> None:
    visit.choose("from", "en")
    best = visit.translated(QUESTION)
    assert visit.window.run("return document.querySelector('#alternatives').hidden")
    visit.click("#more")
    eventually(lambda: not visit.window.run("return document.querySelector('#alternatives').hidden"))
    shown = visit.window.run(
        "return [...document.querySelectorAll('#hypotheses span')].map((each) => each.textContent)"
    )
    with Client(visit.server.address) as client:
        (expected,) = client.translate([QUESTION], "en", "de", options=Options(num_hypotheses=4))
    assert shown == [each.text for each in expected.hypotheses if each.text != best]
    visit.click("#more")
    assert visit.window.run("return document.querySelector('#alternatives').hidden")


def test_words_are_marked_with_their_counterparts(visit: Visit) -> None:
    visit.choose("from", "en")
    visit.translated("Hello 🚆 My brother lives in a house.")  # a character of two code units before the words
    words = visit.window.run("return [...document.querySelectorAll('#result .word')].map((each) => each.textContent)")
    brother = next(i for i, word in enumerate(words) if "Bruder" in word)
    visit.hover("#result .word", brother)
    eventually(lambda: any("brother" in word for word in visit.marked("#mirror")))
    assert [word for word in visit.marked("#result") if "Bruder" in word]
    sources = visit.window.run("return [...document.querySelectorAll('#mirror .word')].map((each) => each.textContent)")
    visit.hover("#mirror .word", next(i for i, word in enumerate(sources) if "brother" in word))
    eventually(lambda: any("Bruder" in word for word in visit.marked("#result")))
    visit.hover("h1")
    eventually(lambda: visit.marked("main") == [])


@ON_BOTH_PORTS
def test_the_keyboard_goes_through_the_words(visit: Visit) -> None:
    visit.choose("from", "en")
    visit.translated(QUESTION)
    visit.window.run("document.querySelector('#result').focus()")
    visit.press("ArrowRight")
    assert visit.window.text("#spoken") == "Wo: Where"
    assert visit.marked("#mirror") == ["Where"]
    visit.press("End")
    assert re.fullmatch("Bahnhof: (train|station|train station)", visit.window.text("#spoken"))  # the model decides
    visit.press("Escape")
    assert visit.marked("main") == []


def test_markup_stays_where_it_is(visit: Visit) -> None:
    visit.choose("from", "en")
    visit.click("#html")
    html = "<p>Where is the <b>train station</b>?</p>"
    translation = visit.translated(html)
    assert re.fullmatch(r"<p>Wo ist der <b>Bahnhof</b>\?</p>", translation)
    assert visit.window.run("return document.querySelector('#result p')") is None


def test_a_glossary_of_the_server_is_applied(visit: Visit) -> None:
    visit.choose("from", "en")
    assert visit.translated(QUESTION) == "Wo ist der Bahnhof?"
    visit.window.run("document.querySelector('details').open = true; document.querySelector('#glossary').focus()")
    visit.window.command("Input.insertText", text="stations")
    eventually(lambda: visit.state == "done" and "Haltepunkt" in visit.window.text("#result"))
    assert visit.window.text("#result") == visit.expected(QUESTION, glossary="stations")
    assert visit.window.text("#error") == ""
    visit.window.run("document.querySelector('#glossary').select(); document.execCommand('delete')")
    eventually(lambda: visit.state == "done" and visit.window.text("#result") == "Wo ist der Bahnhof?")


def test_what_the_server_refuses_is_shown(visit: Visit) -> None:
    visit.choose("from", "en")
    visit.translated(QUESTION)
    visit.window.run("document.querySelector('details').open = true; document.querySelector('#glossary').focus()")
    visit.window.command("Input.insertText", text="nobody")
    eventually(lambda: "NOT_FOUND" in visit.window.text("#error"))
    assert "'nobody'" in visit.window.text("#error")
    assert re.search(r"request [0-9a-f]{16}", visit.window.text("#error"))
    assert visit.state == "old"
    visit.window.run("document.querySelector('#glossary').value = ''")
    visit.click("#error button")
    assert visit.settled() == "Wo ist der Bahnhof?"
    assert visit.window.text("#error") == ""


def check_look(window: Browser, scheme: str, width: int) -> None:
    ground = window.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 384) == (scheme == "dark")
    assert findings(window) == []
    assert window.run("return document.documentElement.scrollWidth") <= width
    assert window.run("return innerWidth") == width


@IN_EACH_LOOK
def test_it_fits_phones_and_the_dark_and_is_made_for_everybody(visit: Visit, scheme: str, width: int) -> None:
    with like(visit.window, scheme, width):
        check_look(visit.window, scheme, width)
        visit.choose("from", "en")
        visit.translated(LONG)
        visit.click("#more")
        eventually(lambda: visit.window.text("#said") != "")
        visit.click("summary")
        visit.window.run("document.querySelector('#result').focus()")
        visit.press("ArrowRight")
        assert findings(visit.window) == []
        visit.window.run("document.querySelector('#glossary').focus()")
        visit.window.command("Input.insertText", text="nobody")
        eventually(lambda: visit.window.text("#error") != "")
        check_look(visit.window, scheme, width)


def test_every_control_is_reached_by_the_keyboard_in_the_order_of_the_page(visit: Visit) -> None:
    visit.choose("from", "en")
    visit.translated(QUESTION)
    visit.window.run("document.querySelector('#from').focus()")
    reached = []
    for _ in range(9):
        reached.append(visit.window.run("return document.activeElement.id || document.activeElement.localName"))
        visit.window.command("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert reached == ["from", "swap", "into", "text", "clear", "result", "more", "copy", "summary"]


def test_a_planted_fault_is_found(visit: Visit) -> None:
    visit.window.run("document.querySelector('label[for=into]').remove()")
    (finding,) = findings(visit.window)
    assert finding.startswith("select-name: #into")


# --- the operators' status


# A script that counts the pixels of a chart's canvas which have one of the page's colours.
INKED = """
const [number, name] = arguments;
const canvas = document.querySelectorAll("#charts canvas")[number];
const copy = (width, height) =>
  Object.assign(document.createElement("canvas"), { width, height }).getContext("2d", { willReadFrequently: true });
const wanted = copy(1, 1);
wanted.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);
wanted.fillRect(0, 0, 1, 1);
const [red, green, blue] = wanted.getImageData(0, 0, 1, 1).data;
const drawn = copy(canvas.width, canvas.height);
drawn.drawImage(canvas, 0, 0);
const { data } = drawn.getImageData(0, 0, canvas.width, canvas.height);
let inked = 0;
for (let i = 0; i < data.length; i += 4)
  if (data[i + 3] > 200 && Math.abs(data[i] - red) + Math.abs(data[i + 1] - green) + Math.abs(data[i + 2] - blue) < 30)
    inked++;
return inked;
"""


@pytest.fixture
def status(server: ServerProcess, window: Browser) -> Browser:
    window.open(f"http://127.0.0.1:{server.admin_port}/status")
    eventually(lambda: window.text("#phase") == "serving")
    return window


def calls_by_status(status: Browser) -> dict[str, int]:
    return {code: int(count) for code, count in re.findall(r"([A-Z_]+) (\d+)", status.text("#codes"))}


def test_the_status_shows_what_is_served(server: ServerProcess, status: Browser) -> None:
    assert "tiny" in status.text("#models")
    assert "en → de" in status.text("#models")
    told = json.loads(http_get(f"http://127.0.0.1:{server.admin_port}/status.json")[2])
    assert status.text("#version") == told["version"]
    assert status.text("#slots-max") == f"of {told['slots_max']:.0f}"


def test_charts_and_numbers_follow_the_traffic(server: ServerProcess, status: Browser) -> None:
    before = calls_by_status(status).get("OK", 0)
    with Client(server.address) as client:
        for text in distinct_texts(20):
            client.translate([text], "en", "de")
        with pytest.raises(ClientError):
            client.translate(["Hello"], "en", "de", model="nobody")
    eventually(lambda: calls_by_status(status).get("OK", 0) - before >= 20)
    eventually(lambda: status.text("#latency") != "–")
    eventually(lambda: "NOT_FOUND" in status.text("#errors"))
    assert "nobody" not in status.text("#errors")
    # Of latencies the p99, drawn last: one slow call flattens the others. There are more slots than are in use.
    lines = ["one", "one", "three", "three", "two", "one"]
    eventually(lambda: all(status.run(INKED, chart, line) > 3 for chart, line in enumerate(lines)))
    with like(status, "dark", 390):
        eventually(lambda: status.run(INKED, 0, "one") > 3)


def test_a_translation_typed_in_comes_back(server: ServerProcess, status: Browser) -> None:
    status.run("document.querySelector('#text').value = 'Help me find the train station.'")
    status.run("document.querySelector('#go').click()")
    eventually(lambda: "score" in status.text("#outcome"))
    with Client(server.address) as client:
        (expected,) = client.translate(["Help me find the train station."], "en", "de")
    assert status.text("#translation") == expected.text
    assert re.search(r"en-de 1 · [\d.]+ ms · score −\d", status.text("#outcome"))


def test_what_the_server_refuses_an_operator_is_shown(status: Browser) -> None:
    status.run("document.querySelector('#into').append(new Option('French', 'fr'))")
    status.run("document.querySelector('#into').value = 'fr'; document.querySelector('#go').click()")
    eventually(lambda: "NOT_FOUND" in status.text("#outcome"))


def test_the_disk_is_looked_at_again(status: Browser) -> None:
    status.run("document.querySelector('#reload').click()")
    eventually(lambda: status.text("#done") == "reload: unchanged")


@IN_EACH_LOOK
def test_the_status_fits_phones_and_the_dark(status: Browser, scheme: str, width: int) -> None:
    with like(status, scheme, width):
        check_look(status, scheme, width)


# --- the reference of the API


@pytest.fixture
def reference(server: ServerProcess, window: Browser) -> Browser:
    window.open(f"{server.http_url}/v1/docs")
    return window


@IN_EACH_LOOK
def test_the_reference_fits_phones_and_the_dark(reference: Browser, scheme: str, width: int) -> None:
    with like(reference, scheme, width):
        check_look(reference, scheme, width)


def test_links_of_the_reference_lead_somewhere(reference: Browser) -> None:
    links = reference.run("return [...document.querySelectorAll('a')].map((each) => each.getAttribute('href'))")
    names = {link.removeprefix("#") for link in links if link.startswith("#")}
    there = set(reference.run("return [...document.querySelectorAll('[id]')].map((each) => each.id)"))
    assert "TranslateRequest" in names <= there
    assert {link for link in links if not link.startswith("#")} == {"../", "openapi.json"}


# Last, because they check everything that happened before.


def test_they_ask_nobody_else_and_have_nothing_to_complain(server: ServerProcess, window: Browser) -> None:
    own = f"{server.http_url}/", f"http://127.0.0.1:{server.admin_port}/", "data:", "chrome:"
    assert {url for url in window.requested() if not url.startswith(own)} == set()
    complaints = [line for line in window.console() if "404 (Not Found)" not in line]  # what the tests ask for in vain
    assert complaints == []


def test_a_planted_request_to_elsewhere_is_stopped_and_seen(server: ServerProcess, window: Browser) -> None:
    window.run(f"fetch('http://127.0.0.1:{server.metrics_port}/metrics').catch(() => {{}})")
    eventually(lambda: any("Content Security Policy" in line for line in window.console()))


def test_a_server_with_keys_asks_for_one(window: Browser, tiny_models: Path, tmp_path: Path) -> None:
    keys = write_keys(tmp_path, ci=ALICE)
    with ServerProcess(tiny_models, "--api-keys", str(keys), has_http=True) as server:
        visit = Visit(window, f"{server.http_url}/", server, streams=True)
        window.open(visit.url)
        for each in ("wrong", ALICE):
            eventually(lambda: "UNAUTHENTICATED" in window.text("#error"))
            assert window.run("return document.activeElement.id") == "key"
            assert findings(window) == []
            window.command("Input.insertText", text=each)
            visit.click("#key-form button")
        eventually(lambda: window.run("return document.querySelector('#into').value") == "de")
        assert window.run("return document.querySelector('#key-form').hidden")
        visit.translated("train station")
        assert window.run("return localStorage.length + sessionStorage.length + document.cookie.length") == 0
        assert ALICE not in window.run("return document.documentElement.outerHTML")
