"""The order of placeholders in a translation, where it means something."""

import re
from collections.abc import MutableMapping, Sequence

from service.domain.translation import Flag
from service.text.protected import Protected
from service.text.spans import Span

# Arguments without a number or a name are taken in order; "%%" and "%n" take none.
_ARGUMENT = re.compile(
    r"(?<!%)%[-+#0,' ]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh?|ll?|[qjztL])?(?:@|[A-Za-mo-z])|\{(?:[:!][^{}]*)?\}"
)
_TAG = re.compile(r"<(/?)([\w:.-]+)[^<>]*>|([\[{])(/?)([a-z]+)(?:[ =][^\[\]{}]*)?[\]}]")


def keep_order(spans: Sequence[Protected], places: MutableMapping[int, Span]) -> bool:
    """Return whether placeholders are in another order than the source's, which changes what they mean.

    Arguments of printf's kind that moved are left there. Tags that ended before they began are put in the source's
    order.
    """
    if len(spans) < 2 or all(places[index] <= places[index + 1] for index in range(len(spans) - 1)):
        return False
    order = sorted(places, key=lambda index: (places[index], index))
    placeholders = [index for index in order if spans[index].flag is Flag.PLACEHOLDER]
    arguments = [index for index in placeholders if _ARGUMENT.search(spans[index].target)]
    tags = [index for index in placeholders if _TAG.search(spans[index].target)]
    is_broken = not _are_nested(spans, tags) and _are_nested(spans, sorted(tags))
    if is_broken:
        in_order = [places[index] for index in tags]
        places.update(zip(sorted(tags), in_order, strict=True))
    return is_broken or arguments != sorted(arguments)


def _are_nested(spans: Sequence[Protected], tags: Sequence[int]) -> bool:
    """Return whether each end tag ends the last one that is open; tags without an end don't count."""
    found = [each for index in tags for each in _TAG.finditer(spans[index].target) if not each[0].endswith("/>")]
    names = [(each[2] or f"{each[3]}{each[5]}", bool(each[1] or each[4])) for each in found]
    ended = {name for name, is_end in names if is_end}
    opened: list[str] = []
    for name, is_end in names:
        if not is_end and name in ended:
            opened.append(name)
        elif is_end and (not opened or opened.pop() != name):
            return False
    return True
