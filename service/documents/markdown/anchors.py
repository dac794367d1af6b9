"""Links to headings: a heading's address is made of its text, so it changes with the translation.

Links follow, by the rule of GitHub, GitLab or Jupyter that most links of a document fit. Where it names ids itself, as
in `# Title {#id}`, linked headings are given the ids that they had.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from service.documents.document import changed
from service.domain.errors import counted

_ANCHOR = re.compile(
    r"""\b(?:id|name)=["']?([^"'\s<>]+)|\{:?[^{}\n]{0,200}?\#([\w:.-]+)|^\(([^()\n]{1,200})\)=|^:name:[ ](\S+)""",
    re.MULTILINE | re.VERBOSE,
)
_OF_WORDS = ("Nd", "Nl", "Pc")
_MAX_NAMES = 5  # in a note


class Heading(NamedTuple):
    """A heading: its text, where that ends in the source (-1: where no id can be), and the id that it is given."""

    text: str
    end: int
    own_id: str


class Link(NamedTuple):
    """A link to a heading: the position of its fragment, after the `#`, and the fragment, decoded."""

    start: int
    end: int
    target: str


@dataclass(slots=True)
class Outline:
    """The headings of a document, or of a part of it, and the links to them; `others` lead to other documents."""

    headings: list[Heading] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def relinked(before: Sequence[Outline], texts: Sequence[str], read: Callable[[str], Outline]) -> list[str]:
    """Return the parts of a translated document with links that lead to its headings; `before` is how they were."""
    rule = _rule(before)
    old = _ids(before, rule)
    wanted = {link.target for part in before for link in part.links}.intersection(old)
    if not wanted:
        return [*texts]
    after = [read(text) for text in texts]
    if [len(part.headings) for part in before] != [len(part.headings) for part in after]:
        return [*texts]
    names_ids = any(heading.own_id for part in before for heading in part.headings)
    addresses = dict(zip(old, _ids(after, rule), strict=True))
    ids = iter(old)
    output: list[str] = []
    for text, part in zip(texts, after, strict=True):
        if names_ids:
            named = ((heading, next(ids)) for heading in part.headings)
            edits = [
                (heading.end, heading.end, f" {{#{name}}}")
                for heading, name in named
                if name in wanted and heading.end >= 0 and not heading.own_id
            ]
        else:
            edits = [(*link[:2], addresses[link.target]) for link in part.links if link.target in addresses]
        output.append(changed(text, sorted(edits)))
    return output


def dead_links(parts: Sequence[Outline], sources: Sequence[str]) -> Iterator[str]:
    """Yield a note about the links to headings that are not known, or of other documents."""
    if not any(part.links or part.others for part in parts):
        return
    known = {"", "top", *_ids(parts, _rule(parts))}
    known.update(name for source in sources for match in _ANCHOR.finditer(source) for name in match.groups() if name)
    left = [f"#{link.target}" for part in parts for link in part.links if link.target not in known]
    left += (address for part in parts for address in part.others)
    if left:
        some = ", ".join(list(dict.fromkeys(left))[:_MAX_NAMES])
        yield f"{counted(len(left), 'link')} to headings of other files, or to unknown headings, may be broken: {some}."


def address_of(text: str) -> str:
    """Return the id of a heading by GitHub's rule."""
    return "".join(filter(_is_kept, text.lower())).replace(" ", "-")


def _of_gitlab(text: str) -> str:
    return re.sub("-+", "-", address_of(text))


def _of_jupyter(text: str) -> str:
    return text.replace(" ", "-")


def _is_kept(character: str) -> bool:
    category = unicodedata.category(character)
    return character in " -" or category[0] in "LM" or category in _OF_WORDS


def _rule(parts: Sequence[Outline]) -> Callable[[str], str]:
    targets = [link.target for part in parts for link in part.links]

    def num_found(rule: Callable[[str], str]) -> int:
        ids = {*_ids(parts, rule)}
        return sum(target in ids for target in targets)

    return max((address_of, _of_gitlab, _of_jupyter), key=num_found)


def _ids(parts: Sequence[Outline], rule: Callable[[str], str]) -> list[str]:
    """Return the ids of headings; equal ones are numbered."""
    counts: dict[str, int] = {}
    found: list[str] = []
    for heading in (each for part in parts for each in part.headings):
        name = base = heading.own_id or rule(heading.text)
        while name in counts and not heading.own_id:
            counts[base] += 1
            name = f"{base}-{counts[base]}"
        counts.setdefault(name, 0)
        found.append(name)
    return found
