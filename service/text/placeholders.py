"""Placeholders, markup and addresses in plain texts, which a translation must keep unchanged."""

import re

from service.domain.checkpoint import checkpoint
from service.domain.errors import TooMany
from service.text.spans import Span

_LINE_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
# An address ends at white space, quotation marks and text in scripts without spaces. Parentheses belong to it only in
# pairs, final punctuation does not.
_NOT_IN_URL = r"\s<>()\"“”„«»`\u3001-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff01-\uff65"
_URL_END = rf"(?:[^{_NOT_IN_URL}.,;:!?'’…*_~\[\]]|\([^{_NOT_IN_URL}]*\))"
_URL = rf"(?:[^{_NOT_IN_URL}]|\([^{_NOT_IN_URL}]{{0,200}}\)){{0,1000}}{_URL_END}"

MAX_PLACEHOLDERS = 65_536  # in a text: each takes a few hundred bytes during translation

# Length of text searched at once, which holds the interpreter for that time. Matches that start in it may extend up to
# `_LONGEST` characters beyond it: longer tags are not found, and longer addresses are cut.
_WINDOW = 8_192
_LONGEST = 2_048

# In order of precedence: of several at the same position, those that contain others come first. All repetitions are
# bounded or end at the next sign of their kind, so that any text takes linear time.
_KINDS = (
    rf"(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.-]{{1,19}}://|www\.(?=\w)){_URL}",
    r"(?<![A-Za-z0-9.+%_-])(?:mailto:)?[A-Za-z0-9.+%_-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])",
    # <b>, </b>, <br/>, <x id="1"/>, <x id=1/>: attributes need values, so "x<y and z>w" does not match
    rf"""<(?=[^<>]{{1,{_LONGEST - 2}}}>)/?+[A-Za-z][\w:.-]*+"""
    rf"""(?:[ \t]++[\w:@.-]++=(?:"[^"<>{_LINE_ENDS}]*+"|'[^'<>{_LINE_ENDS}]*+'|[^\s"'<>=`]++))*+"""
    r"[ \t]*+/?+>",
    rf"\{{\{{\{{?+[^{{}}{_LINE_ENDS}]{{1,200}}\}}?\}}\}}",  # {{x}}, {{{x}}}
    rf"\{{%(?:(?!\{{%)[^{_LINE_ENDS}]){{1,200}}?%\}}",  # {% if x %}
    rf"[$#%]\{{[^{{}}{_LINE_ENDS}]{{1,200}}\}}",  # ${x}, #{x}, %{x}
    r"\{[ ]?[A-Za-z0-9_$][\w.\-\[\]]{0,100}(?:[,!:][^{}\s]{1,40})?[ ]?\}|\{\}",  # {0}, {name}, {0:N2}, {}
    # printf's, but not "100% sure", "50 %discount" or French "5 %d'eau": none of them follows a number
    r"%\((?:\w|[.-]){1,100}\)[-+#0]*\d{0,4}(?:\.\d{1,4})?[diouxXeEfFgGcrsa]",
    r"%\d{1,2}\$[-+#0]*\d{0,4}(?:\.\d{1,4})?(?:hh?|ll?|[qjzt])?[diouxXeEfFgGcsSpbBn@]",
    r"(?<![\d%])(?<!\d[ \u00a0\u202f])%[-+#0]*(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?"
    r"(?:@|[ds](?![a-z]{3})|(?:(?:hh?|ll?|[qjzt])[diouxX]|[iouxXeEfFgGcSpbBn])(?![A-Za-z]))",
    r"%%",
    r"(?<![\w:]):[a-z+-][a-z0-9_+-]{1,40}:(?![\w:])",  # :emoji_code:
)
_PLACEHOLDER = re.compile("|".join(f"(?:{kind})" for kind in _KINDS))


def find_placeholders(text: str) -> list[Span]:
    """Find placeholders of common kinds in a plain text; sorted and disjoint.

    These are `{{x}}`, `{{{x}}}`, `{% x %}`, `{0}`, `{name}`, `{0:N2}`, `{}`, `${x}`, `#{x}`, `%{x}`, printf's (`%s`,
    `%1$s`, `%(name)s`, `%@`, `%.2f`, `%%`), XML tags (`<b>`, `</b>`, `<x id="1"/>`), addresses with a scheme or `www.`,
    e-mail addresses and emoji codes (`:tada:`), which are common in chats and which models translate. None spans
    several lines, and one that contains others, as an address may, counts as one. `$name`, `%1` and ICU's `{n, plural,
    ...}` are excluded: the first two may also be prices and Turkish percentages, the last contains text to be
    translated.

    Raises:
        TooMany: there are more than `MAX_PLACEHOLDERS`.
    """
    spans: list[Span] = []
    position = 0
    while position < len(text):
        checkpoint()
        end = position + _WINDOW
        for found in _PLACEHOLDER.finditer(text, position, end + _LONGEST):
            if found.start() >= end:  # left to the next window, which may see more of it
                break
            if len(spans) == MAX_PLACEHOLDERS:
                raise TooMany(
                    "a text has more than {most} placeholders, tags or addresses",
                    "texts",
                    most=MAX_PLACEHOLDERS,
                    advice="send several calls",
                )
            spans.append(Span(*found.span()))
        position = max(end, spans[-1].end if spans else 0)
    return spans
