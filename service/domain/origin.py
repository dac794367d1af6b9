"""Where a call comes from, for whatever is shared out among callers."""

from collections.abc import Hashable

# From the outside in: the caller, parts of it such as a connection, and last the call itself. Only ever compared.
# Callers choose nothing of it: not, as with request ids, to be taken for another caller or for several.
Origin = tuple[Hashable, ...]


def origin_of_call(*caller: Hashable) -> Origin:
    """Return the origin of a new call from this caller: its host and connection, say, or the name of its key."""
    return (*caller, object())
