"""Limit on the values in a body of JSON, counted before it is parsed.

A parser makes an object of each value, and what checks them an error of each wrong one: 1 MiB of `[],[],...` took 0.2 s
and 44 MiB to parse, of `0,0,...` in place of texts 1.3 s and 490 MiB to refuse. The bytes that separate values are
counted in a millisecond.
"""

from service.domain.errors import TooMany

# More than any API's limits on its own lists allow: 1024 terms, of three fields each, take 7,200.
MAX_VALUES = 16_384

_QUOTE, _BACKSLASH = b'"', b"\\"


def check_json(body: bytes) -> None:
    """Check how many values a body has: each list, object, further element and name in it counts as one.

    Raises:
        TooMany: there are more than `MAX_VALUES`; nothing has been parsed.
    """
    if _count(body) <= MAX_VALUES:  # as most bodies; others may have commas in their texts
        return
    plain = body.replace(_BACKSLASH * 2, b"").replace(_BACKSLASH + _QUOTE, b"")
    num_strings = plain.count(_QUOTE) // 2  # each is an element, a name or the value of one
    number = num_strings if num_strings > MAX_VALUES else _count(b"".join(plain.split(_QUOTE)[::2]))
    if number > MAX_VALUES:
        raise TooMany(
            "the body has {number} values in its lists and objects",
            number=number,
            allowed=str(MAX_VALUES),
            advice="send several calls",
        )


def _count(text: bytes) -> int:
    return sum(map(text.count, (b"[", b"{", b":", b",")))
