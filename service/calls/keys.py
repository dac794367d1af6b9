"""API keys: their creation, and the file with their hashes.

A key has 256 random bits, so its plain SHA-256 can be neither guessed nor looked up: slow, salted hashes are for
passwords chosen by people, and would cost every call milliseconds.
"""

import hashlib
import hmac
import re
import secrets
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from service.config.watched_files import FileProblem, read_file
from service.domain.errors import listed, shown

_PREFIX = "dgm_"  # so that people and scanners for leaked secrets recognize it
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Quotas:
    """Limits on the calls of one key; 0 means no limit. Tokens are those of sources and of translations."""

    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    concurrent_calls: int = 0


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of the file: the SHA-256 of a key in hex, its expiry, and its quotas."""

    name: str
    sha256: str
    expires: datetime | None = None
    quotas: Quotas = Quotas()

    @property
    def has_expired(self) -> bool:
        return self.expires is not None and datetime.now(UTC) >= self.expires


class KeyRing:
    """The keys of a file, with a lookup whose time does not depend on how close a guess is.

    Digests are looked up by their HMAC under a secret of this process, so that the time of a comparison only leaks
    values that no caller can choose or predict ("double HMAC"). This takes a microsecond for any number of keys, unlike
    a comparison with each of them in constant time.
    """

    def __init__(self, keys: Iterable[Key]) -> None:
        self._secret = secrets.token_bytes()
        self._keys = {self._blinded(bytes.fromhex(key.sha256)): key for key in keys}

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys.values())

    @property
    def names(self) -> set[str]:
        return {key.name for key in self}

    def find(self, key: str) -> Key | None:
        """Return the entry of a key as sent by callers, expired or not."""
        return self._keys.get(self._blinded(_digest(key)))

    def _blinded(self, digest: bytes) -> bytes:
        return hmac.digest(self._secret, digest, "sha256")


def new_key() -> str:
    """Create a random key."""
    return _PREFIX + secrets.token_urlsafe()


def key_lines(key: str, name: str, expires: datetime | None, quotas: Quotas) -> str:
    """Return the lines for a key in the file; they do not contain the key itself."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.80} is not a valid key name; allowed are 1 to 64 letters, digits, '_' and '-'.")
    lines = [f"[keys.{name}]", f'sha256 = "{_digest(key).hex()}"']
    if expires is not None:
        lines.append(f"expires = {expires.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")
    given = ((field.name, getattr(quotas, field.name)) for field in fields(quotas))
    lines += [f"{quota} = {number}" for quota, number in given if number]
    return "\n".join(lines) + "\n"


def read_keys(path: Path) -> KeyRing:
    """Read a TOML file of keys: a table `[keys.NAME]` for each, as `key_lines` writes it."""
    try:
        document = tomllib.loads(read_file(path, "API keys").decode("utf-8"))
    except (ValueError, RecursionError) as error:  # invalid TOML or UTF-8; or nested too deeply
        raise FileProblem(f"{path} (API keys) is not TOML: {error}.") from error
    tables = document.pop("keys", {})
    if document or not isinstance(tables, Mapping) or not tables:
        unknown = f"has {listed(map(shown, document))}" if document else "has no keys"
        raise FileProblem(
            f"{path} (API keys) {unknown}; it needs a table [keys.NAME] for each key, and at least one key."
        )
    try:
        keys = [_key(name, table) for name, table in tables.items()]
    except ValueError as error:
        raise FileProblem(f"{path} (API keys): {error}") from error
    names: dict[str, str] = {}
    for key in keys:
        if (other := names.setdefault(key.sha256, key.name)) != key.name:
            raise FileProblem(f"{path} (API keys): {other} and {key.name} are the same key; give each its own.")
    return KeyRing(keys)


_QUOTAS = tuple(field.name for field in fields(Quotas))
_ENTRIES = ("sha256", "expires", *_QUOTAS)


def _key(name: str, table: Any) -> Key:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.80} is not a valid name; allowed are 1 to 64 letters, digits, '_' and '-'.")
    if not isinstance(table, Mapping):
        raise ValueError(f"{name} is not a table; write [keys.{name}].")
    if unknown := [entry for entry in table if entry not in _ENTRIES]:
        raise ValueError(f"{name} has {listed(map(shown, unknown))}; allowed are {', '.join(_ENTRIES)}.")
    sha256, expires = table.get("sha256"), table.get("expires")
    if not isinstance(sha256, str) or not _DIGEST.fullmatch(sha256):
        raise ValueError(f"{name} needs sha256, 64 lower-case hex digits; 'dragoman key new' creates it.")
    if expires is not None and not (isinstance(expires, datetime) and expires.tzinfo):
        raise ValueError(f"{name} has expires = {shown(expires)}; it must be a time with a zone: 2030-01-31T00:00:00Z.")
    for quota in _QUOTAS:
        number = table.get(quota, 0)
        if type(number) is not int or not 0 <= number <= sys.maxsize:
            raise ValueError(f"{name} has {quota} = {shown(number)}; allowed are whole numbers from 0 (no limit).")
    quotas = Quotas(**{quota: table[quota] for quota in _QUOTAS if quota in table})
    return Key(name, sha256, expires, quotas)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
