"""Files of API keys for tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from service.calls.keys import Quotas, key_lines, new_key

ALICE, BOB, SHOP = new_key(), new_key(), new_key()
NO_QUOTAS = Quotas()
NO_GRANTS: Mapping[str, Mapping[str, Sequence[str]]] = MappingProxyType({})


def write_keys(
    folder: Path,
    quotas: Quotas = NO_QUOTAS,
    grants: Mapping[str, Mapping[str, Sequence[str]]] = NO_GRANTS,
    /,
    **keys: str,
) -> Path:
    """Write `keys.toml`, which only its owner can read, with keys by name, all with these quotas."""
    path = folder / "keys.toml"
    path.write_text("\n".join(key_lines(key, name, None, quotas, grants.get(name, {})) for name, key in keys.items()))
    path.chmod(0o600)
    return path
