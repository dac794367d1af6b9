"""Placeholders, markup and addresses in plain texts: what a translation must hold as it is."""

import re

from service.domain.checkpoint import checkpoint
from service.domain.errors import TooMany
from service.text.spans import Span

_LINE_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
# White space, quotation marks and what is written without spaces around an address end it. Of parentheses only pairs
# belong to it, and final punctuation does not.
_NOT_IN_URL = r"\s<>()\"“”„«»`\u3001-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff01-\uff65"
_URL_END = rf"(?:[^{_NOT_IN_URL}.,;:!?'’…*_~\[\]]|\([^{_NOT_IN_URL}]*\))"
_URL = rf"(?:[^{_NOT_IN_URL}]|\([^{_NOT_IN_URL}]{{0,200}}\)){{0,1000}}{_URL_END}"

MAX_PLACEHOLDERS = 65_536  # of a text: each takes a few hundred bytes while it is translated

# So much of a text is searched at once: the interpreter is held as long. What begins within is read up to `_LONGEST`
# characters beyond, so longer tags are none, and of longer addresses the beginning is found.
_WINDOW = 8_192
_LONGEST = 2_048

# In this order: where several begin at the same place, those that hold others come first. Everything that is repeated
# is limited or ends at the next sign of its kind, so that no text takes more than linear time.
_KINDS = (
    rf"(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.-]{{1,19}}://|www\.(?=\w)){_URL}",
    r"(?<![A-Za-z0-9.+%_-])(?:mailto:)?[A-Za-z0-9.+%_-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])",
    # <b>, </b>, <br/>, <x id="1"/>, <x id=1/>: attributes have values, so that "x<y and z>w" is none
    rf"""<(?=[^<>]{{1,{_LONGEST - 2}}}>)/?+[A-Za-z][\w:.-]*+"""
    rf"""(?:[ \t]++[\w:@.-]++=(?:"[^"<>{_LINE_ENDS}]*+"|'[^'<>{_LINE_ENDS}]*+'|[^\s"'<>=`]++))*+"""
    r"[ \t]*+/?+>",
    rf"\{{\{{\{{?+[^{{}}{_LINE_ENDS}]{{1,200}}\}}?\}}\}}",  # {{x}}, {{{x}}}
    rf"\{{%(?:(?!\{{%)[^{_LINE_ENDS}]){{1,200}}?%\}}",  # {% if x %}
    rf"[$#%]\{{[^{{}}{_LINE_ENDS}]{{1,200}}\}}",  # ${x}, #{x}, %{x}
    r"\{[ ]?[A-Za-z0-9_$][\w.\-\[\]]{0,100}(?:[,!:][^{}\s]{1,40})?[ ]?\}|\{\}",  # {0}, {name}, {0:N2}, {}
    # printf's, but not "100% sure", "50 %discount" or French "5 %d'eau": none stands behind a number
    r"%\((?:\w|[.-]){1,100}\)[-+#0]*\d{0,4}(?:\.\d{1,4})?[diouxXeEfFgGcrsa]",
    r"%\d{1,2}\$[-+#0]*\d{0,4}(?:\.\d{1,4})?(?:hh?|ll?|[qjzt])?[diouxXeEfFgGcsSpbBn@]",
    r"(?<![\d%])(?<!\d[ \u00a0\u202f])%[-+#0]*(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?"
    r"(?:@|[ds](?![a-z]{3})|(?:(?:hh?|ll?|[qjzt])[diouxX]|[iouxXeEfFgGcSpbBn])(?![A-Za-z]))",
    r"%%",
    r"(?<![\w:]):[a-z+-][a-z0-9_+-]{1,40}:(?![\w:])",  # :emoji_code:
)
_PLACEHOLDER = re.compile("|".join(f"(?:{kind})" for kind in _KINDS))


def find_placeholders(text: str) -> list[Span]:
    """Where placeholders of common kinds stand in a plain text: in order, apart from each other.

    These are `{{x}}`, `{{{x}}}`, `{% x %}`, `{0}`, `{name}`, `{0:N2}`, `{}`, `${x}`, `#{x}`, `%{x}`, printf's (`%s`,
    `%1$s`, `%(name)s`, `%@`, `%.2f`, `%%`), XML tags (`<b>`, `</b>`, `<x id="1"/>`), addresses with a scheme or `www.`,
    e-mail addresses and emoji codes (`:tada:`), which chats are full of and models translate. None goes over a line's
    end, and one that holds others, as an address may, counts as one. `$name`, `%1` and ICU's `{n, plural, ...}` are
    none: the first two are prices and Turkish percentages as well, the last holds text to be translated.

    Raises:
        TooMany: there are more than `MAX_PLACEHOLDERS`.
    """
    spans: list[Span] = []
    position = 0
    while position < len(text):
        checkpoint()
        end = position + _WINDOW
        for found in _PLACEHOLDER.finditer(text, position, end + _LONGEST):
            if found.start() >= end:  # the next window's, which may see more of it
                break
            if len(spans) == MAX_PLACEHOLDERS:
                raise TooMany(
                    f"a text has more than {MAX_PLACEHOLDERS} placeholders, tags or addresses; send several calls.",
                    "texts",
                )
            spans.append(Span(*found.span()))
        position = max(end, spans[-1].end if spans else 0)
    return spans
