"""Noisy copies of training pairs: the same change on both sides, so that a model handles text as people type it."""

import random
import re
from collections.abc import Callable
from functools import partial

from export.training.items import put_item
from export.training.placeholders import shared_items

MARKS = ("#", "##", "###", "-", ">")  # and numbers, and reserved symbols, which replace what a tokenizer lacks, as "*"
_FINAL = re.compile(r"(?<=[^\W_])[.!?]$")
_MAX_ITEM_NUMBER = 20
_OF_CASE_OR_MARKS = ("lower_case", "upper_case", "title_case", "leading_mark")

Texts = tuple[str, str]


def noisy_copy(
    kind: str, source: str, target: str, symbols: tuple[str, ...], rng: random.Random, another: Callable[[], Texts]
) -> Texts | None:
    """Change both sides by `kind`, a field of `NoiseRecipe`.

    Return `None` if that changes nothing. Changes of case and leading marks also remove final punctuation half of the
    time. `another` returns a random pair.
    """
    changes: dict[str, Callable[[str, str], Texts | None]] = {
        "no_final_punctuation": drop_final_punctuation,
        "lower_case": lambda first, second: (first.lower(), second.lower()),
        "upper_case": lambda first, second: (first.upper(), second.upper()),
        "title_case": lambda first, second: (capitalize_words(first), second),  # only English capitalises headings
        "leading_mark": partial(add_leading_mark, symbols=symbols, rng=rng),
        "symbol_pair": partial(add_symbol_pair, symbols=symbols, rng=rng),
        "item": partial(put_item, rng=rng),
        "joined": partial(join_pairs, rng=rng, another=another),
    }
    changed = changes[kind](source, target)
    if changed is None or changed[0] == source:
        return None
    if kind in _OF_CASE_OR_MARKS and rng.random() < 0.5:
        return drop_final_punctuation(*changed) or changed
    return changed


def drop_final_punctuation(source: str, target: str) -> Texts | None:
    """Remove one full stop, exclamation or question mark from both ends if both follow a letter or digit."""
    if not (_FINAL.search(source) and _FINAL.search(target)):
        return None
    return source[:-1], target[:-1]


def capitalize_words(text: str) -> str:
    return re.sub(r"(?<!\S)\w", lambda first: first[0].upper(), text)


def add_leading_mark(source: str, target: str, symbols: tuple[str, ...], rng: random.Random) -> Texts | None:
    """Add the same heading, bullet, quotation or number mark before both sides, unless they begin with one."""
    if not (source[:1].isalnum() and target[:1].isalnum()):
        return None
    mark = rng.choice((*MARKS, f"{rng.randint(1, _MAX_ITEM_NUMBER)}.", *_free(symbols, source, target, rng)[:1]))
    return f"{mark} {source}", f"{mark} {target}"


def add_symbol_pair(source: str, target: str, symbols: tuple[str, ...], rng: random.Random) -> Texts | None:
    """Put two reserved symbols, like tags, around a word that both sides share, or around the whole text if none is."""
    free = _free(symbols, source, target, rng)
    if len(free) < 2:
        return None
    opening, closing = free[:2]
    shared = [item for item in shared_items(source, target) if source.count(item) == target.count(item) == 1]
    if not shared:
        return f"{opening}{source}{closing}", f"{opening}{target}{closing}"
    word = rng.choice(shared)
    return source.replace(word, f"{opening}{word}{closing}"), target.replace(word, f"{opening}{word}{closing}")


def join_pairs(source: str, target: str, rng: random.Random, another: Callable[[], Texts]) -> Texts:
    """Put one or two random pairs behind this one, each if both sides so far end a sentence."""
    for _ in range(rng.randint(1, 2)):
        if not (_FINAL.search(source) and _FINAL.search(target)):
            break
        more = another()
        source, target = f"{source} {more[0]}", f"{target} {more[1]}"
    return source, target


def _free(symbols: tuple[str, ...], source: str, target: str, rng: random.Random) -> list[str]:
    free = [symbol for symbol in symbols if symbol not in source and symbol not in target]
    rng.shuffle(free)
    return free
