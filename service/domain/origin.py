"""The origin of a call, for everything that is shared fairly among callers."""

from collections.abc import Hashable

# From the outside in: the caller, parts of it such as a connection, and last the call itself. Only ever compared.
# No part is chosen by callers, unlike request ids, so none can pose as another caller or as several.
Origin = tuple[Hashable, ...]


def origin_of_call(*caller: Hashable) -> Origin:
    """Return the origin of a new call from this caller, given as its host and connection, for example, or its key's
    name.
    """
    return (*caller, object())
