"""Files of API keys for tests."""

from pathlib import Path

from service.calls.keys import Quotas, key_lines, new_key

ALICE, BOB = new_key(), new_key()
NO_QUOTAS = Quotas()


def write_keys(folder: Path, quotas: Quotas = NO_QUOTAS, **keys: str) -> Path:
    """Write `keys.toml`, which only its owner can read, with keys by name; all have these quotas."""
    path = folder / "keys.toml"
    path.write_text("\n".join(key_lines(key, name, None, quotas) for name, key in keys.items()))
    path.chmod(0o600)
    return path
