"""The blocks of a document, as the slots of their texts."""

import bisect
import functools
import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from service.documents.directives import Directive, kind_of, unknown_directives
from service.documents.document import DocumentText, MimeType, Slot, has_words, notes_on_left
from service.documents.inline import InlineText, Kind
from service.documents.lines import Lines
from service.documents.markdown.anchors import Heading, Link, Outline
from service.documents.markdown.blocks import FROM_END, INTERRUPTED, QUOTE, block_rule, terms_rule
from service.documents.markdown.pieces import Inner, sentence
from service.documents.markdown.spans import KEPT, KIND, SPAN, STOPS, inline_rule
from service.documents.markdown.writing import Frame, plain, written

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_LINE_END = re.compile(r"\r\n?|\n")
_TITLE = re.compile(r"""[ \t](?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|\(((?:[^()\\]|\\.)*)\))[ \t]*\Z""")
_HEADING_END = re.compile(r"[ \t]+#+[ \t]*\Z")
_ADDRESS = re.compile(r"""(?:\]\(\s*<?|\]:\s*<?|\shref\s*=\s*["'])\#(?P<id>[^\s<>"')]+)""")
_OTHER = re.compile(r"(?!\w+:|//)[^#]+\.(?:md|mdx|markdown|ipynb)#.", re.IGNORECASE)
_HTML_HEADING = re.compile(
    r"""<h[1-6](?:\s[^<>]{0,300}?)?(?:\sid=["']([^"'<>]{1,200})["'][^<>]{0,300})?>((?:(?!<h[1-6]).){0,1000}?)</h[1-6]""",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile("<[^<>]*>")
_OWN_ID = re.compile(r"\{:?[^{}]{0,200}?#([\w:.-]+)[^{}]{0,200}\}\s*\Z")
_NO_ADDRESSES = ("", "#")  # of definitions that are comments, as in `[//]: # (text)`
_MDX = re.compile(
    r"^(?:import [^\n]* from ['\"]|import ['\"]|export (?:default|const) )|\{/\*|<[A-Z]\w*[\s/>.]", re.MULTILINE
)
_MYST = re.compile(r"^[ \t>]*(?:`{3,}|:{3,})\{[a-z]|\{[a-z:]{2,20}\}`|^\([^()\n]{1,200}\)=[ \t]*$", re.MULTILINE)
_DIRECTIVE = re.compile(r"\{([A-Za-z][\w:.+-]*)\}")


class Reader:
    """The blocks of one document, or of a `part` of it."""

    def __init__(self, source: str, begin: int = 0, *, is_mdx: bool = False, part: str = "") -> None:
        self._source = source
        self._part = part
        self._begin = begin
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(source))]
        self._skipped = bisect.bisect_left(self._starts, begin)  # lines
        self._cursor = 0  # all before it belongs to earlier texts
        self._is_mdx = is_mdx
        self.outline = Outline()
        self._num_left = 0
        self._unknown: list[str] = []  # directives

    @property
    def is_mdx(self) -> bool:
        return self._is_mdx

    @property
    def notes(self) -> Iterator[str]:
        yield from notes_on_left(self._num_left, "text", why="lines begin in an unusual way")
        yield from unknown_directives(self._unknown)

    def slots(self) -> list[Slot]:
        tokens, references, self._is_mdx = parsed(self._source[self._begin :], is_mdx=self._is_mdx)
        found = [*self._blocks(tokens), *self._definitions(references)]
        return sorted(found, key=lambda slot: slot.start)

    def _blocks(self, tokens: Sequence["Token"]) -> Iterator[Slot]:
        is_in_table = False
        before = ""
        for token in tokens:
            if token.type in ("table_open", "table_close"):
                is_in_table = token.nesting > 0
            if token.map is not None and token.type == "html_block":
                yield from self._html(token)
            elif match := _DIRECTIVE.match(token.info):
                self._unknown += [match[1]] * (kind_of(match[1]) is not Directive.KEPT)
            elif token.map is not None and token.type == "inline" and token.content:
                yield from self._slot(token, is_in_table, before)
            before = token.type if token.markup not in ("=", "-") else "setext"

    def _html(self, token: "Token") -> Iterator[Slot]:
        from service.documents import html as page  # slow to import, and few documents need it

        assert token.map is not None
        first, end = (line + self._skipped for line in token.map)
        read = token.content.rstrip("\n").split("\n")
        start = self._before(read[0].strip(), *self._line(first))
        stop = self._line(min(end, len(self._starts)) - 1)[1]
        self._add_links(self._line(first)[0], stop)
        for match in _HTML_HEADING.finditer(token.content):
            text = html.unescape(_TAG.sub("", match[2])).strip()
            self.outline.headings.append(Heading(text, -1, match[1] or ""))
        if start is None:
            start = stop
        source = self._source[start:stop]
        lines = _LINE_END.split(source)
        if all(line.strip() == each.strip() for line, each in zip(lines, read, strict=False)) and start < stop:
            yield from page.slots(source, Lines(source, self._part, first + 1), start)
        else:  # signs of a quotation are among its lines
            self._num_left += any(True for _ in page.slots(token.content, Lines(token.content)))

    def _slot(self, token: "Token", is_cell: bool, before: str) -> Iterator[Slot]:
        assert token.map is not None
        first = token.map[0] + self._skipped
        lines = token.content.split("\n")
        read = sentence(token, is_cell=is_cell)
        inline = InlineText(read.pieces)
        found = self._found(token, lines, first, is_cell)
        if found is None:
            self._num_left += inline.has_words or bool(read.inner)
            return
        start, end = found
        self._outline(token, start, end, first, is_heading=before in ("heading_open", "setext"))
        frame = Frame(
            ending="\r\n" if "\r\n" in self._source[start:end] else "\n",
            prefix=self._prefix(first + 1, lines[1]) if len(lines) > 1 else "",
            quote=token.meta.get(QUOTE, ""),
            pipe=r"\|" if is_cell else "&#124;" if before == "setext" else "|",
            space="&nbsp;" if "&nbsp;" in token.content else "\u00a0",
            dollar=r"\$" if r"\$" in token.content else "$",  # to some readers, two of them are always mathematics
            is_line="|" not in self._source[self._starts[first] : start]
            if is_cell
            else before not in ("heading_open", "kept_block"),
            is_mdx=self._is_mdx,
        )
        inner: list[Slot] = []
        for text in read.inner:
            place = self._place(token.content, text, start, first)
            if place is None:  # all the markup stays as it is
                read, inner = sentence(token, is_cell=is_cell, has_inner=False), []
                inline = InlineText(read.pieces)
                break
            inner.append(self._inner_slot(text, place, first, frame))
        self._cursor = end
        if inline.has_words:
            whole = inline.document_text(self._named(first))
            yield Slot(start, end, whole, functools.partial(written, inline, frame), inner=tuple(inner))
        else:
            yield from inner

    def _outline(self, token: "Token", start: int, end: int, first: int, *, is_heading: bool) -> None:
        children = token.children or ()
        if is_heading:
            shown = (each for each in children if each.type in ("text", "text_special", "code_inline", KEPT))
            text = "".join(each.content for each in shown if each.meta.get(KIND) is not Kind.MARK).strip()
            own_id = _OWN_ID.search(token.content)
            self.outline.headings.append(Heading(text, end, own_id[1] if own_id else ""))
        for child in children:
            if child.type not in ("link_open", "link_close", "html_inline", "pair_open", KEPT):
                continue
            href = unquote(str(child.attrs.get("href", "")))
            raw = child.content or child.markup
            if _OTHER.match(href) or (raw.startswith("[[") and "#" in raw):
                self.outline.others.append(href or raw)
            span: Any = child.meta.get(SPAN) or (0, 0)
            for match in _ADDRESS.finditer(token.content, *span):
                address = Inner(*match.span("id"), match["id"], "")
                if place := self._place(token.content, address, start, first):
                    self.outline.links.append(Link(*place, unquote(match["id"])))
                else:
                    self.outline.others.append("#" + match["id"])

    def _add_links(self, start: int, end: int) -> None:
        for match in _ADDRESS.finditer(self._source, start, end):
            self.outline.links.append(Link(*match.span("id"), unquote(match["id"])))

    def _found(self, token: "Token", lines: Sequence[str], first: int, is_cell: bool) -> tuple[int, int] | None:
        """Return where the lines of a block are in the source, without what marks the block."""
        if first + len(lines) > len(self._starts):
            return None
        start, end = self._line(first)
        begin = max(start, self._cursor)
        if is_cell:
            pattern = re.escape(lines[0]).replace(r"\|", r"\\?\|")
            match = re.compile(pattern).search(self._source, begin, end)
            return match.span() if match else None
        end -= token.meta.get(FROM_END, 0)
        if (position := self._before(lines[0], begin, end)) is None:
            heading = _HEADING_END.search(self._source, begin, end)
            position = self._before(lines[0], begin, heading.start()) if heading else None
        if position is None or len(lines) == 1:
            return None if position is None else (position, position + len(lines[0].rstrip()))
        last_start, last_end = self._line(first + len(lines) - 1)
        last = self._before(lines[-1], last_start, last_end)
        return None if last is None else (position, last + len(lines[-1].rstrip()))

    def _before(self, text: str, start: int, end: int) -> int | None:
        """Return where `text` begins in a stretch of the source that ends with it and maybe spaces; else `None`."""
        text = text.rstrip()
        while end > start and self._source[end - 1].isspace():
            end -= 1
        return end - len(text) if self._source.endswith(text, start, end) else None

    def _place(self, content: str, text: Inner, start: int, first: int) -> tuple[int, int] | None:
        """Return where in the source a text within the markup of a block is, which starts at `start`."""
        line_start = content.rfind("\n", 0, text.start) + 1
        if line_start:
            line = content[line_start:].split("\n", 1)[0]
            position = self._before(line, *self._line(first + content.count("\n", 0, line_start)))
            if position is None:
                return None
            start = position - line_start
        place = start + text.start, start + text.end
        return place if self._source[slice(*place)] == content[text.start : text.end] else None

    def _definitions(self, references: Mapping[str, Any]) -> Iterator[Slot]:
        for definition in references.values():
            if definition["href"].startswith("#"):
                first, end = definition["map"]
                self._add_links(self._starts[first + self._skipped], self._line(end - 1 + self._skipped)[1])
            if not has_words(definition["title"]) or definition["href"] in _NO_ADDRESSES:
                continue
            last = definition["map"][1] - 1 + self._skipped
            match = _TITLE.search(self._source, *self._line(last))
            if match is None or match.lastindex is None or _unescaped(match[match.lastindex]) != definition["title"]:
                continue
            text = Inner(0, 0, match[match.lastindex], "\"')"[match.lastindex - 1])
            yield self._inner_slot(text, match.span(match.lastindex), last, Frame())

    def _inner_slot(self, text: Inner, place: tuple[int, int], line: int, frame: Frame) -> Slot:
        source_text = DocumentText(_unescaped(text.text), MimeType.TEXT, self._named(line))
        own_frame = replace(frame, quote=text.quote)
        return Slot(*place, source_text, lambda translation: plain(own_frame, translation) + text.suffix)

    def _named(self, line: int) -> str:
        return f"{self._part}, line {line + 1}" if self._part else f"line {line + 1}"

    def _line(self, number: int) -> tuple[int, int]:
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._source)
        return start, start + len(self._source[start:end].rstrip("\r\n"))

    def _prefix(self, number: int, line: str) -> str:
        start, end = self._line(number)
        text = self._source[start:end]
        return text[: max(0, text.rfind(line))]


def _unescaped(raw: str) -> str:
    from markdown_it.common.utils import unescapeAll  # slow to import

    return unescapeAll(raw)


def parsed(source: str, *, is_mdx: bool) -> tuple[list["Token"], dict[str, dict[str, object]], bool]:
    """Return the tokens of Markdown, its definitions of references, and whether it is MDX, if only by its looks."""
    env: dict[str, object] = {
        "mdx": is_mdx or _MDX.search(source) is not None,
        "myst": _MYST.search(source) is not None,
    }
    tokens = _parser().parse(source, env)
    return tokens, env.get("references", {}), bool(env["mdx"])  # type: ignore[return-value]  # as the parser makes it


@functools.cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # slow to import
    from mdit_py_plugins.deflist import deflist_plugin
    from mdit_py_plugins.footnote import footnote_plugin

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.disable(["text_join", "fragments_join"])  # they would join tokens whose positions differ
    for name in ("newline", "escape", "backticks", "link", "image", "autolink", "html_inline"):
        rule = next(each.fn for each in parser.inline.ruler.__rules__ if each.name == name)
        parser.inline.ruler.at(name, _located(rule))
    parser.use(footnote_plugin, inline=False, move_to_end=False)
    parser.use(deflist_plugin)
    parser.block.ruler.before("deflist", "terms", terms_rule)
    parser.block.ruler.before("fence", "kept_block", block_rule, {"alt": INTERRUPTED})
    parser.inline.ruler.before("escape", "kept", inline_rule)
    parser.inline.terminator_re = re.compile(rf"{parser.inline.terminator_re.pattern}|{STOPS}")
    return parser


def _located(rule: "Callable[[StateInline, bool], bool]") -> "Callable[[StateInline, bool], bool]":
    """Return the parser's rule, extended to record its tokens' positions."""

    def located(state: "StateInline", silent: bool) -> bool:
        start, num_tokens, has_pending = state.pos, len(state.tokens), bool(state.pending)
        if not rule(state, silent):
            return False
        if not silent:
            new = state.tokens[num_tokens:]
            if has_pending and new:
                del new[0]  # the text before
            if new and new[0].type == "link_open" and new[0].info != "auto":
                end = state.md.helpers.parseLinkLabel(state, start, True)
                new[0].meta[SPAN] = start, start + 1
                new[-1].meta[SPAN] = end, state.pos
            elif new:
                new[0].meta[SPAN] = start, state.pos
        return True

    return located
