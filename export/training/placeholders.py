"""Reserved symbols in training pairs: they replace items found on both sides, so that the model learns to copy them."""

import random
import re

FIRST_SYMBOL = 0xE000  # Unicode's private use area: survives NFKC and occurs in no ordinary text
MAX_SYMBOLS = 0xF8FF - FIRST_SYMBOL + 1

# Numbers with their separators, and capitalised or technical words (names, products, identifiers).
_CANDIDATE = re.compile(r"\d+(?:[.,:]\d+)*|[A-Z][\w\-]{2,}|\w+(?:[._/]\w+)+")


def reserved_symbols(count: int) -> tuple[str, ...]:
    return tuple(chr(FIRST_SYMBOL + i) for i in range(count))


def shared_items(source: str, target: str) -> list[str]:
    """Return numbers, names and identifiers that occur exactly once on each side, in the order of the source."""
    in_source, in_target = _CANDIDATE.findall(source), _CANDIDATE.findall(target)
    return [item for item in dict.fromkeys(in_source) if in_source.count(item) == in_target.count(item) == 1]


def substitute(source: str, target: str, symbols: tuple[str, ...], rng: random.Random) -> tuple[str, str] | None:
    """Replace one to three shared items by different random symbols; return `None` if the pair shares none."""
    shared = shared_items(source, target)
    if not shared:
        return None
    chosen = rng.sample(shared, min(len(shared), rng.randint(1, 3)))
    replacement: dict[str, str] = dict(zip(chosen, rng.sample(symbols, len(chosen)), strict=True))

    def replace(match: re.Match[str]) -> str:
        return replacement.get(match[0], match[0])

    return _CANDIDATE.sub(replace, source), _CANDIDATE.sub(replace, target)
