"""Placeholders, markup and addresses in plain texts, which a translation must keep unchanged."""

from service.text.placeholders.custom import OwnPlaceholders, check_own
from service.text.placeholders.kinds import STRING_KINDS
from service.text.placeholders.search import MAX_PLACEHOLDERS, Placeholder, find_placeholders, search_placeholders

__all__ = [
    "MAX_PLACEHOLDERS",
    "STRING_KINDS",
    "OwnPlaceholders",
    "Placeholder",
    "check_own",
    "find_placeholders",
    "search_placeholders",
]
