"""Placeholders in plain texts, each between two marks in the tables, and the caller's own."""

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.checkpoint import checkpoints
from service.domain.errors import InvalidRequest, TooMany
from service.domain.translation import OwnPlaceholder
from service.text.placeholders import OwnPlaceholders, custom, find_placeholders, search, search_placeholders
from tests.hostile_patterns import LONGEST, hostile_searches
from tests.patience import patient

MARKED = re.compile("‹(.*?)›", re.DOTALL)


def unmarked(text: str) -> str:
    """Return a text without the marks around what is to be found."""
    return re.sub("[‹›]", "", text)


def found(text: str, *custom: OwnPlaceholder) -> list[str]:
    if not custom:
        return [text[start:end] for start, end in find_placeholders(text)]
    return [text[start:end] for start, end, _ in search_placeholders(text, OwnPlaceholders(custom))]


@pytest.mark.parametrize(
    "marked",
    [
        "Hello ‹{{name}}›, you have ‹{{ count }}› messages.",
        "Raw ‹{{{html}}}› and ‹{% if user.is_admin %}›admin‹{% endif %}›.",
        "Hello ‹{0}›, ‹{1}›‹{2}›.",
        "‹{name}› has ‹{count:,}› ‹{items[0]}› for ‹{price:.2f}› or ‹{0,10:F2}›",
        "Done: ‹{}› of ‹{}›",
        "‹{user.first_name}›'s ‹{photo-album}›",
        "Set ‹${HOME}› and ‹${user.name ?? 'x'}›, ‹#{ruby}› or ‹%{count}›",
        "‹%s› deleted ‹%d› files",
        "‹%1$s› sent ‹%2$s› to ‹%3$d›, ‹%1$@›",
        "‹%(name)s› owes ‹%(amount).2f›",
        "‹%@› is ‹%ld› years, ‹%lld›, ‹%zu›, ‹%05d›, ‹%-10s›, ‹%+.2f›, ‹%x›, 0x‹%02X›, ‹%*d›",
        "Width: ‹%d›px, '‹%s›', (‹%s›), ‹%s›.",
        "‹%.2f›‹%%› done",
        "‹%d›‹%s›",
        "Click ‹<b>›here‹</b>› or ‹<br/>› ‹<br />›.",
        "‹<x id=\"1\"/>›text‹<x id=2/>› ‹<g id='3'>›a‹</g>›",
        '‹<a href="{{url}}" title="One. Two">›link‹</a>›',
        '‹<xliff:g id="n">›5‹</xliff:g>›',
        "See ‹https://example.com/a?b=c&d=%20e#f›.",
        "(see ‹https://en.wikipedia.org/wiki/Dog_(animal)›) and so on",
        'See "‹http://a.b/c›", <‹https://x.y›> or ‹http://localhost:8000/›!',
        "‹www.example.com›, ‹ftp://files.example.org/x.zip›; ‹myapp://open/{id}›",
        "请访问‹https://example.com/›路径。然后",
        "Siehe ‹https://example.org/Straße› und mehr",
        "Write to ‹jane.doe+test@mail.example.co.uk›.",
        "‹mailto:a@b.de›, 联系‹a@b.com›吧",
        "Great ‹:tada:› ‹:+1:› ‹:white_check_mark:›",
        "‹<0>›Read‹</0>› ‹<1/>› and ‹<12 />›",
        "Dear ‹<%= user.name %>› ‹<%- total %>› ‹<?= $x ?>›",
        "‹%name%›, 50%count% of 100% and ‹%SystemRoot%›",
        "‹:attribute› from ‹:min›, not 12:30 :D :-)",
        "‹$t(a.b)› ‹{{x, number}}› ‹{{ f({a: 1}) }}›",
        "‹%#@files@› ‹%1$#@folders@›",
        "‹<@12>› ‹<@!3>› ‹<#4>› ‹<:e:5>› ‹<t:6:R>› ‹<!here>›",
        "‹[b]›A‹[/b]› ‹[url=https://a.b/c]›d‹[/url]› [sic]",
        '‹<color=#6C4900>›a‹</color>› ‹<size=24>› ‹<link="x">›',
        r"‹caf\u00e9› ‹caf&eacute;› ‹\x41› ‹\N[1]› ‹\(name)›",
        "‹%<n>d› ‹%<m>.1f› ‹%1!s!› ‹%0:s› ‹%1%› ‹%1$tY› ‹%v› ‹%'d›",
        "‹%1› of ‹%2›, ‹%L3›, ‹%n›",
        "‹{1:dd MMM yyyy}› ‹{0,-10:N2}› ‹{x!r:>10}›",
        "‹{ $name }› ‹{ -brand }› ‹{$n :number}› ‹{ F($x, y: 2) }›",
        "‹{{ x|upper }}› ‹{{> part}}› ‹{{ x | date:'short' }}›",
        "‹${a.b(c)}› ‹$(whoami)› ‹$HOME› ‹$user->name› ‹$NAME$›",
        "‹{0,number,#.##}› ‹{day, date, long}›",
        "Fish ‹&amp;› chips ‹&#8211;› R&D; A&B",
        '‹{"a": "b"}›, ‹{a: 1}›, ‹{\'a\': {"b": [{"}": 1}]}}›, ‹["a", \'b\']›; {note: this is text} ["a" b]',
        "‹```a```› b ‹```js\nlet a = 1;\n```›\nc ‹````\nd ``` e\n````›: ``` f\ng ‹```h```› i ```",
        "‹§a›Hello ‹§6›you, § 5, §5 BGB",
        '‹[gallery id="1"]› ‹[_1]› ‹[FIRST_NAME]› [a b]',
        "‹@count› ‹%author› ‹!link› ‹@:key› ‹@.lower:key›",
        "‹:kbd:`Ctrl+S`› ‹``save --all``› ‹`x`›",
        "‹*|NAME|*› ‹<<name>>› ‹__COUNT__› ‹\x1b[1m›",
        r"‹C:\new\my table\x›, ‹d:\x› y.",
        "‹{:?}› ‹{:>8}› ‹{/b}› ‹{@html x}›",
        "‹'{'›name‹'}'›",
        "‹@Model.Name›, ‹@(x.y)›, ‹{!! $x !!}›, ‹$env:PATH›",
        "‹[quant,_1,file]› ‹[site:name]› ‹[a_b]› [e.g.] [Fig. 1]",
        "‹$1› of ‹$2›",
        "‹{n}›‹|plural(one=a,other=b)› ‹~p›, ~5 ‹£a£›",
        "‹|name|› ‹~name~› ‹^name^› ‹=name=›",
        "‹[Your name]› ‹[first-name]› [laughs] ‹«Email»› «mot» ‹«GreetingLine»›",
        "‹<<First Name>>› ‹<user name>› ‹###USER###› ‹#name#› ‹::name::›",
        "‹%%First Name%%› ‹%FIRST NAME%› ‹%%=v(@x)=%%› ‹%[name]›",
        r"‹{Binding Name}› ‹{?name}› ‹{*a}› ‹{  x  }› ‹{\i1}›a‹{\i0}›",
        "‹user@host›, ‹root@10.0.0.1› and ‹lodash@4.17.0›.",
        "‹@string/ok›, ‹@angular/core›, ‹$HOME/bin›, ‹$a›/month",
        "‹t`x`›, ‹html`<b>`›, don`t and ‹%llu›MB, ‹%.1f›s, ‹%ls›",
        r"See ‹\ref{a:b}›, ‹\emph›{a b}, ‹\alpha›",
    ],
)
def test_placeholders_are_found(marked: str) -> None:
    assert found(unmarked(marked)) == MARKED.findall(marked)


@pytest.mark.parametrize(
    "text",
    [
        *("I am 100% sure.", "100%sure and 50%discount", "A 50 % discount, 5 % do, 30 %d'intérêts"),
        *("10% of 20% is 2%.", "What % is it?", "%50 indirim, %5", "It costs $5, $1,000 or US$ 3.", "a < b and c > d"),
        *("if x<y and z>w then", "x < 3 > 2 <3", "<- left -> <= >= <> </> < b>", "f(x) = {a, b, c}"),
        *("{ a sentence in braces }", "At 12:30:45: see 3:16", "Note: this: that, std::vector::size, a:b:c"),
        *("a@b, 5 @ 3.50", "example.com and/or TCP/IP, e.g. 1://", "{{ } }} {\n}", "[note] [left] (sic) 3 < 4"),
        *("100 % of 3 %5 and a|", "{n, plural, one {# item}", "{n, plural, one # item}}", "{{a\nb}}"),
        "{a sentence of five words} [sic] [on phone] [door slams]",
        *("2 * 3 = 6 =, ~5, a ~ b, x^2, «mot», it`s John`s", ""),
    ],
)
def test_what_is_none_is_not_found(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "marked",
    [
        "‹{n, plural, =0 {›no‹} one {›# file‹} other {›# files‹}}›",
        "‹{n,plural,offset:1 one{›a‹}other{›b‹}}›",
        "‹{g, select, m {›‹{n, plural, one {›#‹} other {›b‹}}›‹} other {›c‹}}›",
        "‹{0,choice,0#›no‹|1#›one‹|1<›{0} more‹}›",
        "‹{n, select, a {›x '}' y‹} other {›z‹}}›",
        "{n, plural, one {# ‹{n, select, a {›x‹} other {›y‹}}›",
        r"One.‹\n›Two.‹\r\n\t›Three",
        "‹{% if x %}›a‹{% else %}›b‹{% endif %}› {% url x %}",
        "‹{{#if x}}›a‹{{else}}›b‹{{/if}}› {{x}}",
        "‹<% if x %>›a‹<% end %>›<%= y %>",
        "‹{#if x}›a‹{:else}›b‹{/if}› ‹{if $x}›a‹{else}›b‹{/if}›",
        "‹<#if x>›a‹</#if>› ‹#if($x)›a‹#else› b‹#end›",
        "a‹<br/>›b‹<p>›c‹</p>›<b>d</b>",
        "a‹&lt;br/&gt;›b‹&lt;p id='x'&gt;›c &lt;b&gt;",
        "‹{n:plural:›one a‹|›{} b‹}› ‹{x:choose(1|2):›c‹|›d‹}›",
        "‹[*]›a ‹[quote]›b‹[/quote]› [left]",
        "a ‹```\nb\n```› ```c``` d ``` e\nf ‹```g\nh```› i",
        "no apple ‹|› one apple ‹||||› {0}a‹|›[2,*]b",
    ],
)
def test_what_is_apart_separates_texts(marked: str) -> None:
    text = unmarked(marked)
    assert [text[start:end] for start, end, is_apart in search_placeholders(text) if is_apart] == MARKED.findall(marked)


def test_a_plurals_number_is_kept() -> None:
    text = "{n, plural, one {# of #5, {x, select, other {# '#'}}} other {#}} #"
    kept = [start for start, end, is_apart in search_placeholders(text) if text[start:end] == "#" and not is_apart]
    assert kept == [text.index(each) for each in ("# of", "#5", "# '", "#}}")]


_PARTS = st.sampled_from([*'{}%sd$1 <>/="a@.:()é', "{{", "}}", "http://", "www."])


@given(st.lists(_PARTS | st.text(max_size=3), max_size=30).map("".join), st.integers(1, 40))
def test_spans_are_in_order_and_apart_and_windows_make_no_difference(text: str, size: int) -> None:
    spans, whole = find_placeholders(text), found(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    for placeholder in whole:
        assert placeholder == placeholder.strip()
        assert len(placeholder.splitlines()) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_WINDOW", size)
        assert found(text) == whole


def test_there_are_not_more_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_PLACEHOLDERS", 3)
    assert found("{} %s {x}") == ["{}", "%s", "{x}"]
    for text in ("{} %s {x} {}", "{n,select,a{}b{}other{}}"):
        with pytest.raises(TooMany, match="more than 3 placeholders"):
            found(text)


def test_no_search_goes_on_for_long() -> None:
    """No more than a window is searched between checkpoints."""
    num_passed = 0

    def passed() -> None:
        nonlocal num_passed
        num_passed += 1

    with checkpoints(passed):
        find_placeholders("{%" * 50_000)
    assert num_passed >= 100_000 // 8_192


@pytest.mark.parametrize(
    "unit",
    [
        *("{", "{{", "{{a", "{% ", "{%", "${", "<", "<a ", '<a x="', "<a x=1 ", "http://", "http://(", "www.", "a@"),
        *("a.", "%", "%(", ":a", "a-", "&", "<%", "<?", "<!--", "<1", "<a=", "{{#", "{#", "{a,", "{a:", "{a(", "${{"),
        *("$(", "$a", "@", "@:(", " !a", " :a", ":a:`", "%%a", "%1", "%a-", "%<a", "&#1", "[a ", "[a=", "[left]"),
        *("[a b=c ", "\\", "\\a[", "\\(", "a\\u0041", "`a", "§", "*|a", "__A", "C:\\", "{a,plural,one{"),
        *("{a,choice,1#", "{a,plural,one{}", "{a,select,b{'{", "{a:plural:", "{a ", "<a b ", "<<a ", "|a", "~a", "^a"),
        *("```a\n", '{"a":', '{"a":"', '["a', '["a",', "{a:1{", "A&", "A & ", "AA & "),
        *("=a", "«a", "[*a ", "[first ", "###a", "%%A ", "%A ", "$a^", "t`a", "\\ref{", "&lt;p ", "a@b."),
    ],
)
def test_hostile_texts_take_linear_time(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    start = time.process_time()
    find_placeholders(text)
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize(
    ("given", "text", "expected"),
    [
        ((OwnPlaceholder(r"[A-Z]+-\d+"),), "Fix JIRA-1 and {x}", ["JIRA-1", "{x}"]),
        ((OwnPlaceholder(start="[[", end="]]"),), "[[a b]] [[c {d}]] [[e\n]] [[f", ["[[a b]]", "[[c {d}]]"]),
        ((OwnPlaceholder(start="~", end="~"),), "~a~b~c~", ["~a~", "~c~"]),
        ((OwnPlaceholder("é+"), OwnPlaceholder(r"\bfoo")), "foo é\ud800é foo", ["foo", "é", "é", "foo"]),
        ((OwnPlaceholder(r"x|\b"),), "ab x", ["x"]),
        ((OwnPlaceholder("ab"), OwnPlaceholder("bc+d")), "abccd bcd", ["ab", "bcd"]),
        ((OwnPlaceholder(r"\{n.*\}"),), "{n, plural, one {a} other {b}} {c", ["{n, plural, one {a} other {b}}"]),
        ((), "JIRA-1 {x}", ["{x}"]),
    ],
)
def test_own_placeholders_are_found_first(given: tuple[OwnPlaceholder, ...], text: str, expected: list[str]) -> None:
    assert found(text, *given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (OwnPlaceholder("("), r"placeholders\[0\] is '\(', which RE2 can't read: 'missing \)"),
        (OwnPlaceholder(r"(a)\1"), "invalid escape sequence"),
        (OwnPlaceholder("(?:(?:a{99}){99}){99}"), "repetitions of too many characters; allowed: 1000 characters"),
        (OwnPlaceholder(r"[\]x]{600}\pL{0,400}[[:alpha:]]"), "repetitions of too many characters"),
        (OwnPlaceholder(r"\pL{60}"), "RE2 can't read: 'pattern too large"),
        (OwnPlaceholder("\ud800"), "it is not Unicode"),
        (OwnPlaceholder("a*"), "matches the empty text; use"),
        (OwnPlaceholder("x" * 201), "is too long; allowed: 200 characters"),
        (OwnPlaceholder(start="[" * 21, end="]"), "20 for a mark"),
        (OwnPlaceholder(), "needs a pattern, or a start and an end"),
        (OwnPlaceholder(start="["), "needs a pattern, or a start and an end"),
        (OwnPlaceholder("a", "[", "]"), "needs a pattern, or a start and an end"),
    ],
)
def test_what_can_not_be_used_is_refused(given: OwnPlaceholder, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as error:
        OwnPlaceholders((given,))
    assert error.value.field == "placeholders[0]"


UNIT = 'See ABC-123 {{name}}, %(x)s <b class="x">, "Ü-1"\n漢字 \U0001f355 at https://a.b/c?d=é. '
ORDINARY = (
    *(r"\{\{\w+\}\}", r"%\(\w+\)s", "<[^>]{1,100}>", r"[A-Z]{2,5}-\d{1,6}", r"https?://[^\s<>]{1,500}", r"\bS[^,]*"),
    *('"[^"\\n]{0,60}"', "漢.{1,500}?a", "(?m)^漢."),
)


@pytest.mark.parametrize("text", [UNIT * 500, UNIT.encode("ascii", "ignore").decode() * 500])
@pytest.mark.parametrize("pattern", ORDINARY)
def test_ordinary_patterns_are_found_in_long_texts_as_in_short_ones(pattern: str, text: str) -> None:
    search = OwnPlaceholders((OwnPlaceholder(pattern),))
    spans = re.compile(pattern, re.ASCII).finditer(text)
    assert [tuple(span) for span in search.find(text)] == [span.span() for span in spans]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^a", "a" * 9_000, ["a"]),
        (r"\bb+", "a" * 2_048 + "bb bb", ["bb"]),
        (r"(?:ab)+\b", "ab" * 1_279 + "abc ab", ["ab"]),
        ("(?:ab)+$", "ab" * 2_000 + "c" + "ab" * 9, ["ab" * 9]),
        ("é.{498}é", "ä" * 1_700 + "é" + "x" * 498 + "é", ["é" + "x" * 498 + "é"]),
    ],
)
def test_where_one_part_of_a_text_ends_nothing_begins(pattern: str, text: str, expected: list[str]) -> None:
    assert found(text, OwnPlaceholder(pattern)) == expected


def refusal_of(given: OwnPlaceholder, text: str) -> InvalidRequest | None:
    try:
        OwnPlaceholders((given,)).find(text)
    except InvalidRequest as error:
        return error
    return None


@pytest.mark.parametrize("num_characters", [2_048, pytest.param(LONGEST, marks=pytest.mark.full)])
def test_hostile_patterns_are_searched_for_in_steps_or_refused(
    num_characters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In CPU time, of which each step takes 20 ms here, whatever the text's length; some took a minute."""
    limit = custom.MAX_SECONDS * num_characters / LONGEST
    monkeypatch.setattr(custom, "MAX_SECONDS", limit)
    for pattern, text in hostile_searches(num_characters):
        step, began = 0.0, time.thread_time()
        last = began

        def passed() -> None:
            nonlocal step, last
            now = time.thread_time()
            step, last = max(step, now - last), now

        with checkpoints(passed):
            refusal = refusal_of(OwnPlaceholder(pattern), text)
            passed()
        assert refusal is None or (refusal.field == "placeholders[0]" and refusal.allowed + refusal.advice)
        assert step < patient(0.1), pattern
        assert last - began < patient(2 * limit + 0.1), pattern


def test_the_time_of_all_texts_and_placeholders_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom, "MAX_SECONDS", 0.2)
    own = (OwnPlaceholder("b"), OwnPlaceholder(r"(?:\w{0,30}){30}!"), OwnPlaceholder(start="c", end="d"))
    search = OwnPlaceholders(own)
    texts = iter(["a" * 500] * 10_000)
    with pytest.raises(InvalidRequest) as raised:
        any(map(search.find, texts))
    assert next(texts, None) is not None  # not the first one
    said = str(raised.value)
    assert said.startswith(r"placeholders[1] is '(?:\\w{0,30}){30}!'; the search for the call's placeholders")
    assert "allowed: 0.2 s of CPU time per call. Use fewer" in said


def test_marks_that_nothing_ends_take_linear_time() -> None:
    for unit in ("a", "ab"):
        search = OwnPlaceholders((OwnPlaceholder(start="a", end="b"),))
        began = time.process_time()
        search.find(unit * (50_000 // len(unit)))
        assert time.process_time() - began < 3
