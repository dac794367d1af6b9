"""The pages in a real browser, as visitors and operators see them: translation, status, and reference of the API."""

import json
import re
import shutil
import subprocess
import sys
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
field.dispatchEvent(new Event("change", { bubbles: true }));
"""
WITHOUT_FRAGMENT = "if (origin !== 'null') history.replaceState(null, '', location.pathname);"
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

    def open(self, address: str = "") -> None:
        """Open the page as a visitor does who was not here before."""
        self.window.run(WITHOUT_FRAGMENT)  # or nothing would be loaded where only the fragment changes
        self.window.command("Storage.clearDataForOrigin", origin=self.url.rstrip("/"), storageTypes="local_storage")
        self.load(address)

    def load(self, address: str = "") -> None:
        self.window.open(f"{self.url}{address}")
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
    assert re.fullmatch(r"Model en-de 1 · licence CC-BY-4\.0 · [\d,]+ ms", visit.window.text("#facts"))
    assert visit.window.text("#spoken") == "Wo ist der Bahnhof?"  # what a screen reader says
    assert visit.window.run("return document.querySelector('#result').lang") == "de"
    visit.type(" ")
    eventually(lambda: visit.state == "empty")
    assert visit.window.text("#facts") == ""


INTO = "return document.querySelector('#into').value"


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


def test_a_text_in_the_target_language_stays_and_is_said_to_be(visit: Visit) -> None:
    visit.choose("into", "de")
    german = "Wo ist der Bahnhof, bitte?"
    assert visit.translated(german) == german
    assert visit.window.text("#said") == "The text is in German already."  # and German is translated into nothing
    assert re.fullmatch(r"[\d,]+ ms", visit.window.text("#facts"))
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
    assert visit.window.text("#said") == "Translation from German into English is not available here."
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
    visit.window.run("document.querySelector('#options').open = true; document.querySelector('#glossary').focus()")
    visit.window.command("Input.insertText", text="stations")
    eventually(lambda: visit.state == "done" and "Haltepunkt" in visit.window.text("#result"))
    assert visit.window.text("#result") == visit.expected(QUESTION, glossary="stations")
    assert visit.window.text("#error") == ""
    visit.window.run("document.querySelector('#glossary').select(); document.execCommand('delete')")
    eventually(lambda: visit.state == "done" and visit.window.text("#result") == "Wo ist der Bahnhof?")


def test_what_the_server_refuses_is_shown(visit: Visit) -> None:
    visit.choose("from", "en")
    visit.translated(QUESTION)
    visit.window.run("document.querySelector('#options').open = true; document.querySelector('#glossary').focus()")
    visit.window.command("Input.insertText", text="nobody")
    words = "There is no glossary “nobody” for these languages."
    eventually(lambda: visit.window.text("#error").startswith(words))
    details = visit.window.text("#error details")  # what an operator is told
    assert re.fullmatch(r"DetailsNOT_FOUND: .*'nobody'.*Request [0-9a-f]{16}", details)
    assert visit.state == "old"
    visit.window.run("document.querySelector('#glossary').value = ''")
    visit.click("#error > button")
    assert visit.settled() == "Wo ist der Bahnhof?"
    assert visit.window.text("#error") == ""


def test_readers_are_told_what_they_can_do(visit: Visit) -> None:
    cases: list[tuple[int, dict[str, str], str]] = [
        (429, {"code": "RESOURCE_EXHAUSTED", "reason": "queue_full"}, "Too many people are translating"),
        (429, {"code": "RESOURCE_EXHAUSTED", "reason": "quota"}, "Your key has reached its quota"),
        (400, {"code": "INVALID_ARGUMENT", "reason": "too_long"}, "Part of this is too long"),
        (404, {"code": "NOT_FOUND", "field": "target_language_code"}, "Translation from English into German is not"),
        (504, {"code": "DEADLINE_EXCEEDED"}, "This took too long."),
        (502, {}, "The server does not answer."),  # says a proxy
        (413, {}, "This is too large"),
        (418, {}, "The server could not translate this."),
    ]
    asked = {"source_language_code": "en", "target_language_code": "de"}
    for status, error, words in cases:
        script = "return inWords(new Refusal(arguments[0], arguments[1]), arguments[2])"
        assert visit.window.run(script, status, error, asked).startswith(words)


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
        visit.window.run("for (const each of document.querySelectorAll('details')) each.open = true")
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
    for _ in range(14):
        reached.append(visit.window.run("return document.activeElement.id || document.activeElement.localName"))
        visit.window.command("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
    own = ["from", "swap", "into", "text", "clear", "result", "more", "copy"]
    assert reached == [*own, *3 * ["summary"], *3 * ["a"]]  # options, code and history, then the page's languages


def test_a_planted_fault_is_found(visit: Visit) -> None:
    visit.window.run("document.querySelector('label[for=into]').remove()")
    (finding,) = findings(visit.window)
    assert finding.startswith("select-name: #into")


# --- texts that are long, slow or linked


TEXT = "return document.querySelector('#text').value"
ADDRESS = "return decodeURIComponent(location.hash)"


def test_a_text_longer_than_a_call_is_sent_in_parts(visit: Visit) -> None:
    visit.choose("into", "de")
    visit.window.run("SETTINGS.maxCharacters = 200")
    paragraphs = [QUESTION, LONG.strip(), "", f"  {QUESTION}"]
    text = "\n\n".join(paragraphs)
    visit.type(text[:180])
    assert visit.window.text("#count") == "180 of 200 characters"
    assert visit.translated(text) == "\n\n".join(visit.expected(each) if each else "" for each in paragraphs)
    assert visit.window.text("#count") == f"{len(text)} characters, translated in 3 parts"
    assert visit.window.run("return document.querySelector('#more').hidden")
    visit.click("#html")  # whose parts are no HTML
    eventually(lambda: visit.window.run("return document.querySelector('#count').className") == "beyond")


def test_parts_are_whole_where_they_can_be(visit: Visit) -> None:
    cases = {
        "One two. Three four.\n\nFive.": ["One two. ", "Three four.\n\n", "Five."],
        "onetwothreefourfive\n": ["onetwothreefo", "urfive\n"],
        "a b c d e f g h": ["a b c d e f g", " h"],
        "\n" * 20: ["\n" * 13, "\n" * 7],
        "👩‍👩‍👧" * 2: ["👩‍👩‍👧", "👩‍👩‍👧"],
        "": [""],
    }
    for text, parts in cases.items():
        assert visit.window.run("return partsOf(arguments[0], 13)", text) == parts


SLOW = {"offline": False, "latency": 3000, "downloadThroughput": -1, "uploadThroughput": -1}
FAST = {**SLOW, "latency": 0}
OFFLINE = {**FAST, "offline": True}


def test_something_moves_while_a_slow_server_is_awaited_and_a_stopped_one_is_told_of(visit: Visit) -> None:
    visit.choose("into", "de")
    visit.window.command("Network.enable")
    try:
        visit.window.command("Network.emulateNetworkConditions", **SLOW)
        visit.type(QUESTION)
        eventually(lambda: not visit.window.run("return document.querySelector('#busy').hidden"))
        assert visit.window.run("return document.querySelector('#busy').getAnimations()[0].playState") == "running"
        assert (visit.window.text("#progress"), visit.window.text("#result")) == ("Translating…", "")
        assert visit.settled() == "Wo ist der Bahnhof?"
        assert visit.window.run("return document.querySelector('#busy').hidden")
        visit.window.command("Network.emulateNetworkConditions", **OFFLINE)
        visit.type(f"{QUESTION} Now?")
        eventually(lambda: visit.window.text("#error").startswith("The server does not answer."))
        assert "Details" not in visit.window.text("#error")  # there are none
    finally:
        visit.window.command("Network.emulateNetworkConditions", **FAST)
    visit.click("#error > button")
    assert visit.settled().startswith("Wo ist der Bahnhof?")


def test_a_translation_is_linked_by_the_address(visit: Visit) -> None:
    visit.choose("from", "en")
    visit.choose("into", "hi")
    translation = visit.translated("50% of a/b? #1")
    assert visit.window.run(ADDRESS) == "#en/hi/50% of a/b? #1"
    link = visit.window.run("return location.hash")
    visit.open(link)
    assert visit.settled() == translation
    assert visit.window.run(TEXT) == "50% of a/b? #1"
    visit.window.run("location.hash = '#auto/de/' + encodeURIComponent(arguments[0])", QUESTION)
    eventually(lambda: visit.window.text("#result") == "Wo ist der Bahnhof?")
    visit.window.run("location.hash = '#en/xx/Hello'")
    eventually(lambda: visit.window.text("#said") == "The languages of this link are not available here.")


def test_the_chosen_languages_stay(visit: Visit) -> None:
    visit.choose("into", "hi")
    visit.window.open("about:blank")
    visit.load()
    assert visit.window.run(INTO) == "hi"
    visit.open()
    assert visit.window.run(INTO) == "fr"


def test_the_history_is_kept_only_if_wanted(visit: Visit) -> None:
    def past() -> list[str]:
        return list(
            visit.window.run("return [...document.querySelectorAll('#past li')].map((each) => each.textContent)")
        )

    visit.choose("into", "de")
    visit.translated(QUESTION)
    assert visit.window.run("return localStorage.getItem('dragoman.history')") is None
    visit.click("#keeps")
    for text in ("It costs", "It costs 5 euros.", QUESTION):
        visit.type(text)
        eventually(lambda: visit.state == "done" and visit.window.run(TEXT) in past()[0])
    costs = f"GermanIt costs 5 euros.{visit.expected('It costs 5 euros.')}"
    assert past() == [f"German{QUESTION}Wo ist der Bahnhof?", costs]  # what was typed in between is not there
    visit.window.open("about:blank")
    visit.load()
    visit.click("#past li:last-child button")
    eventually(lambda: visit.window.run(TEXT) == "It costs 5 euros.")
    visit.settled()
    visit.click("#forget")
    assert past() == []
    visit.click("#keeps")
    assert visit.window.run("return localStorage.getItem('dragoman.history')") is None


def test_a_text_is_pasted(visit: Visit) -> None:
    visit.choose("into", "de")
    permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    visit.window.command("Browser.grantPermissions", permissions=permissions, origin=visit.url.rstrip("/"))
    visit.window.command("Emulation.setFocusEmulationEnabled", enabled=True)  # whose clipboard a page may read
    visit.window.run("return navigator.clipboard.writeText(arguments[0])", QUESTION)
    visit.click("#paste")
    assert visit.settled() == "Wo ist der Bahnhof?"
    assert visit.window.run("return document.querySelector('#paste').hidden")


@ON_BOTH_PORTS
def test_the_same_request_is_shown_as_code(visit: Visit) -> None:
    visit.choose("into", "de")
    visit.window.run(
        "document.querySelector('#code').open = true; document.querySelector('#glossary').value = 'stations'"
    )
    text = """Where is the train station? It's "here" \\ 5 €."""
    visit.translated(text)
    shell, python = visit.window.texts("pre")
    answer = subprocess.run(["sh", "-c", f"{shell} -s"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert json.loads(answer)["translations"][0]["text"] == visit.window.text("#result")
    printed = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True, timeout=60, check=True)
    assert printed.stdout == f"{visit.window.text('#result')}\n"
    assert "Haltepunkt" in printed.stdout


# --- readers of other languages, and without JavaScript


def test_the_page_speaks_the_readers_language(visit: Visit) -> None:
    visit.open("?lang=de")
    assert visit.window.text("#files-tab") == "Dateien"
    visit.choose("into", "de")
    assert visit.translated(QUESTION) == "Wo ist der Bahnhof?"
    assert visit.window.text("#count") == "27 Zeichen"
    assert visit.window.text("#detected") == "Englisch, erkannt"
    visit.click("footer a[lang=en]")
    eventually(
        lambda: visit.window.text("#files-tab") == "Files" and visit.window.text("#result") == "Wo ist der Bahnhof?"
    )
    for code in ("de", "hi"):
        visit.open(f"?lang={code}")
        with like(visit.window, "light", 390):
            check_look(visit.window, "light", 390)


def test_the_page_can_be_read_from_right_to_left(visit: Visit) -> None:
    with like(visit.window, "light", 390):
        visit.window.run("document.documentElement.dir = 'rtl'")
        visit.choose("into", "de")
        visit.translated(LONG)
        check_look(visit.window, "light", 390)
        first, last = visit.window.run(
            "return ['from', 'into'].map((id) => document.getElementById(id).getBoundingClientRect().x)"
        )
        assert first > last
        texts = visit.window.run(
            "return ['text', 'result'].map((id) => getComputedStyle(document.getElementById(id)).direction)"
        )
        assert texts == ["ltr", "ltr"]  # each text has its own


def test_boxes_show_that_they_scroll(visit: Visit) -> None:
    attachments = visit.window.run(
        "return [...document.querySelectorAll('.scrolls')].map((each) => getComputedStyle(each).backgroundAttachment)"
    )
    assert attachments == 2 * ["local, local, scroll, scroll"]  # covers go with the text, shadows stay


def test_without_javascript_the_page_says_so(visit: Visit) -> None:
    visit.window.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        visit.window.open(visit.url)
        assert visit.window.shown("main") is False
        assert visit.window.shown("noscript p") is True
    finally:
        visit.window.command("Emulation.setScriptExecutionDisabled", value=False)


# --- files


@pytest.fixture
def files(server: ServerProcess, window: Browser, tmp_path: Path) -> "Files":
    visit = Visit(window, f"{server.http_url}/", server, streams=True)
    visit.open()
    visit.choose("into", "de")
    visit.click("#files-tab")
    return Files(visit, tmp_path)


@dataclass(frozen=True)
class Files:
    """The tab of files, and a folder with those to choose."""

    visit: Visit
    folder: Path

    def choose(self, **contents: bytes) -> None:
        """Choose files; `_` in a name is its point."""
        names = [self.folder / name.replace("_", ".") for name in contents]
        for path, data in zip(names, contents.values(), strict=True):
            path.write_bytes(data)
        root = self.visit.window.command("DOM.getDocument")["root"]["nodeId"]
        box = self.visit.window.command("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
        self.visit.window.command("DOM.setFileInputFiles", files=[str(path) for path in names], nodeId=box)

    def shown(self) -> list[str]:
        return self.visit.window.texts("#files > li", "innerText")

    def downloaded(self, name: str) -> bytes:
        """Download a file as a visitor does."""
        folder = str(self.folder / "downloads")
        self.visit.window.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
        self.visit.click(f"#files a[download='{name}']")
        path = self.folder / "downloads" / name
        eventually(path.exists)
        return path.read_bytes()


FILM = b"1\n00:00:01,000 --> 00:00:03,000\nWhere is the train station?\n"
LETTER = REPOSITORY / "tests" / "field" / "files" / "d1.docx"


def test_files_are_translated_and_downloaded(files: Files) -> None:
    window = files.visit.window
    assert {".docx", ".srt", ".md"} <= set(window.run("return document.querySelector('#file').accept").split(","))
    texts = b"en:\n  where: Where is the train station?\n"
    german = b"Wo ist der Bahnhof, bitte?"
    files.choose(film_srt=FILM, letter_docx=LETTER.read_bytes(), german_txt=german, en_yml=texts)
    eventually(lambda: window.run("return document.querySelectorAll('#files a').length") == 4)
    assert "German · 1 text · 1 kB" in files.shown()[0]
    assert "1 text: was in the target language already" in files.shown()[2]
    assert "flagged" not in files.shown()[2]
    assert "The root's key en was set to de." in files.shown()[3]
    assert files.downloaded("film.de.srt") == FILM.replace(b"Where is the train station?", b"Wo ist der Bahnhof?")
    assert files.downloaded("letter.de.docx").startswith(b"PK")
    assert files.downloaded("german.de.txt") == german
    assert findings(window) == []
    with like(window, "dark", 390):
        check_look(window, "dark", 390)


def test_a_file_that_cannot_be_translated_says_why(files: Files) -> None:
    window = files.visit.window
    window.run("SETTINGS.maxFileBytes = 1000")
    files.choose(broken_docx=b"PK no archive", huge_txt=b"a" * 2000, scan_pdf=b"%PDF", unknown_txt=b"qq zz xkcd")
    eventually(lambda: window.run("return document.querySelectorAll('#files .failed').length") == 4)
    broken, huge, scan, unknown = files.shown()
    assert "It may be damaged, or its name may have the wrong ending." in broken
    assert "This is too large for the server." in huge
    assert "This kind of file cannot be translated." in scan
    assert "choose it above and try again" in unknown
    assert findings(window) == []
    files.visit.choose("from", "en")
    files.visit.click("#files > li:last-child button")
    eventually(lambda: window.run("return document.querySelectorAll('#files a').length") == 1)


def test_a_file_is_cancelled_and_tried_again(files: Files) -> None:
    window = files.visit.window
    many = "\n\n".join(distinct_texts(3000)).encode()
    files.choose(many_txt=many, film_srt=FILM)
    eventually(lambda: "Translating" in files.shown()[0])
    window.run("document.querySelector('#files button').focus()")
    files.visit.click("#files button")
    assert "Cancelled" in files.shown()[0]
    assert window.run("return document.activeElement.textContent") == "Try again"
    eventually(lambda: window.run("return document.querySelectorAll('#files a').length") == 1)
    labels = r'\{code="CANCELLED",kind="document",method="http/v1/files"\}'
    eventually(lambda: sum(samples(files.visit.server.get("/metrics")[2], f"dragoman_requests_total{labels}")) >= 1)
    files.visit.click("#files li:first-child button:last-child")
    assert len(files.shown()) == 1


def test_files_are_dropped_anywhere(files: Files) -> None:
    files.visit.click("#text-tab")
    files.visit.window.run(
        """
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([arguments[0]], "film.srt"));
    for (const kind of ["dragover", "drop"])
      document.body.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
    """,
        FILM.decode(),
    )
    eventually(lambda: "Download" in "".join(files.shown()))
    assert b"Wo ist der Bahnhof?" in files.downloaded("film.de.srt")
    assert files.visit.window.run("return document.querySelector('#text-panel').hidden")


def test_operators_translate_texts_only(server: ServerProcess, window: Browser) -> None:
    Visit(window, f"http://127.0.0.1:{server.admin_port}/", server, streams=False).open()
    assert window.run("return document.querySelector('#tabs').hidden")


def test_the_tabs_are_reached_by_arrow_keys(files: Files) -> None:
    window = files.visit.window
    window.run("document.querySelector('#files-tab').focus()")
    files.visit.press("ArrowLeft")
    assert window.run("return [document.activeElement.id, document.querySelector('#files-panel').hidden]") == [
        "text-tab",
        True,
    ]


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


def test_the_sample_is_in_the_source_language(server: ServerProcess, status: Browser) -> None:
    told = json.loads(http_get(f"http://127.0.0.1:{server.admin_port}/status.json")[2])
    samples = {code: text for model in told["models"] for code, text in model["samples"].items()}
    assert set(samples) == {"en", "fr"}
    for source, shown in (("fr", samples["fr"]), ("it", ""), ("en", samples["en"])):
        status.run(CHOOSE, "from", source)
        assert status.run(TEXT) == shown
    status.run("document.querySelector('#text').value = 'typed'")
    status.run(CHOOSE, "from", "fr")
    assert status.run(TEXT) == "typed"


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


def test_the_reference_shows_the_address_that_it_was_loaded_from(server: ServerProcess, reference: Browser) -> None:
    assert reference.text("pre").startswith(f"curl {server.http_url}/v1/translate -H ")


# Last, because they check everything that happened before.


def test_they_ask_nobody_else_and_have_nothing_to_complain(server: ServerProcess, window: Browser) -> None:
    own = f"{server.http_url}/", f"http://127.0.0.1:{server.admin_port}/", "data:", "chrome:"
    assert {url for url in window.requested() if not url.startswith(own)} == set()
    asked_in_vain = "404 (Not Found)", "400 (Bad Request)", "net::ERR_INTERNET_DISCONNECTED"
    complaints = [line for line in window.console() if not any(each in line for each in asked_in_vain)]
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
            eventually(lambda: window.run("return document.activeElement.id") == "key")
            assert findings(window) == []
            window.command("Input.insertText", text=each)
            visit.click("#key-form button")
            eventually(lambda: "not accept this key" in window.text("#error") or window.run(INTO) == "de")
        assert window.run("return document.querySelector('#key-form').hidden")
        visit.translated("train station")
        visit.click("#files-tab")
        Files(visit, tmp_path).choose(film_srt=FILM)
        eventually(lambda: "Download" in window.text("#files"))
        window.run("document.querySelector('#code').open = true")
        eventually(lambda: "Authorization: Bearer KEY" in window.text("#programs"))
        kept = "return JSON.stringify([localStorage, sessionStorage, document.cookie, document.body.outerHTML])"
        assert ALICE not in window.run(kept)
