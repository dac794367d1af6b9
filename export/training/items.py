"""Made-up numbers and identifiers in training pairs: the same on both sides, so that a model learns to copy them."""

import random
import re
import string
from collections.abc import Callable

from export.training.placeholders import shared_items

_WORDS = ("admin", "backup", "cache", "config", "data", "file", "index", "log", "main", "order", "report", "user")
_LETTERS = string.ascii_uppercase
_HAS_DIGIT = re.compile(r"\d")
_FINAL = re.compile(r"[.!?]$")


def make_item(rng: random.Random) -> str:
    """Return a made-up item of a random kind: those of the server's promise about numbers (`docs/requests.md`)."""
    return rng.choice(_KINDS)(rng)


def put_item(source: str, target: str, rng: random.Random) -> tuple[str, str]:
    """Put a made-up item in place of a number that both sides share, or else before or behind both sides."""
    item = make_item(rng)
    shared = [each for each in shared_items(source, target) if _HAS_DIGIT.search(each)]
    if shared:
        old = rng.choice(shared)
        return source.replace(old, item), target.replace(old, item)
    place = rng.choice(("{item}: {text}", "{text} ({item})", "{text}: {item}", "{text} {item}"))
    end = ""
    if place != "{item}: {text}":  # "Open the file ." rather than "Open the file. (A-17)"
        ends = _FINAL.search(source), _FINAL.search(target)
        if all(ends):
            source, target, end = source[:-1], target[:-1], source[-1]
    return place.format(item=item, text=source) + end, place.format(item=item, text=target) + end


def _digits(rng: random.Random, count: int) -> str:
    return str(rng.randint(1, 9)) + "".join(rng.choices(string.digits, k=count - 1))


def _version(rng: random.Random) -> str:
    return rng.choice(("", "v")) + ".".join(str(rng.randint(0, 30)) for _ in range(rng.randint(3, 4)))


def _date(rng: random.Random) -> str:
    return f"{rng.randint(1950, 2039)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _telephone(rng: random.Random) -> str:
    sign = rng.choice((" ", "-"))
    parts = [_digits(rng, rng.randint(2, 4)) for _ in range(rng.randint(2, 4))]
    return rng.choice((f"+{rng.randint(1, 99)} ", "0", "")) + sign.join(parts)


def _name(rng: random.Random) -> str:
    first, second = rng.sample(_WORDS, 2)
    return rng.choice(
        (f"{first}_{second}", f"{first}-{rng.randint(1, 99)}", f"{first}{second.title()}", f"{first}.json")
    )


def _path(rng: random.Random) -> str:
    return rng.choice(("/", "~/", "./")) + "/".join(rng.sample(_WORDS, rng.randint(2, 3)))


def _code(rng: random.Random) -> str:
    letters = "".join(rng.choices(_LETTERS, k=rng.randint(1, 3)))
    return letters + rng.choice(("-", "")) + _digits(rng, rng.randint(2, 6))


_KINDS: tuple[Callable[[random.Random], str], ...] = (
    lambda rng: _digits(rng, rng.randint(2, 3)),
    lambda rng: _digits(rng, rng.randint(4, 8)),
    _version,
    _date,
    lambda rng: f"{rng.randint(0, 23)}:{rng.randint(0, 59):02}",
    _telephone,
    lambda rng: ".".join(str(rng.randint(0, 255)) for _ in range(4)),
    _name,
    _path,
    _code,
    lambda rng: f"CVE-{rng.randint(2005, 2030)}-{_digits(rng, rng.randint(4, 5))}",
    lambda rng: f"{rng.choice(_WORDS)}{rng.randint(1, 99)}@example.{rng.choice(('com', 'org'))}",
    lambda rng: f"https://example.com/{rng.choice(_WORDS)}/{_digits(rng, 3)}",
)
