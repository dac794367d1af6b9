"""API keys: their creation, and the file with their hashes.

A key has 256 random bits, so a plain SHA-256 suffices: slow, salted hashes are for passwords, and cost milliseconds.
"""

import hashlib
import hmac
import json
import re
import secrets
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from service.config.watched_files import FileProblem, read_file
from service.domain.errors import listed, shown
from service.domain.grants import EVERYTHING, Grants

_PREFIX = "dgm_"  # so that people and scanners for leaked secrets recognize it
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SECOND = 'sha256 = ["OLD", "NEW"]'

# What may be restricted, as `Grants` has it: nothing is.
NO_GRANTS: Mapping[str, Sequence[str]] = MappingProxyType({"models": (), "glossaries": ()})


@dataclass(frozen=True, slots=True)
class Quotas:
    """Limits on the calls of one key; 0 means no limit. Tokens are those of sources and of translations."""

    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    concurrent_calls: int = 0


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the file: its SHA-256 in hex, and what its name has. A name may have several, while callers change."""

    name: str
    sha256: str
    expires: datetime | None = None
    quotas: Quotas = Quotas()
    grants: Grants = EVERYTHING

    @property
    def digits(self) -> str:
        """Return the first digits of the hash, which tell the keys of a name apart."""
        return self.sha256[:8]

    @property
    def has_expired(self) -> bool:
        return self.expires is not None and datetime.now(UTC) >= self.expires


class KeyRing:
    """The keys of a file, with a lookup whose time does not depend on how close a guess is.

    Digests are looked up by their HMAC under a secret of this process: the time only leaks values that no caller can
    choose or predict ("double HMAC"). This takes a microsecond for any number of keys; comparing each takes longer.
    """

    def __init__(self, keys: Iterable[Key]) -> None:
        self._secret = secrets.token_bytes()
        self._keys = {self._blinded(bytes.fromhex(key.sha256)): key for key in keys}

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys.values())

    @property
    def names(self) -> dict[str, set[str]]:
        names: dict[str, set[str]] = {}
        for key in self:
            names.setdefault(key.name, set()).add(key.digits)
        return names

    def find(self, key: str) -> Key | None:
        """Return the entry of a key as sent by callers, expired or not."""
        return self._keys.get(self._blinded(_digest(key)))

    def _blinded(self, digest: bytes) -> bytes:
        return hmac.digest(self._secret, digest, "sha256")


def unknown_names(keys: Iterable[Key], models: Iterable[str], glossaries: Iterable[str]) -> list[str]:
    """Return a sentence for each model and glossary that a key may use and that does not exist."""
    known = {"model": frozenset(models), "glossary": frozenset(glossaries)}
    granted = {
        (each.grants.key, kind, name)
        for each in keys
        for kind, names in (("model", each.grants.models), ("glossary", each.grants.glossaries))
        for name in (names or frozenset()) - known[kind]
    }
    return [
        f"key {key} may use {kind} {shown(name)}, which this server does not have; it has {listed(sorted(known[kind]))}"
        for key, kind, name in sorted(granted)
    ]


def new_key() -> str:
    return _PREFIX + secrets.token_urlsafe()


def key_lines(
    key: str, name: str, expires: datetime | None, quotas: Quotas, grants: Mapping[str, Sequence[str]] = NO_GRANTS
) -> str:
    """Return the lines for a key in the file; they do not contain the key itself."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.80} is not a valid key name; allowed: 1 to 64 letters, digits, '_' and '-'.")
    lines = [f"[keys.{name}]", f'sha256 = "{_digest(key).hex()}"']
    if expires is not None:
        lines.append(f"expires = {expires.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")
    given = ((field.name, getattr(quotas, field.name)) for field in fields(quotas))
    lines += [f"{quota} = {number}" for quota, number in given if number]
    lines += [f"{grant} = {json.dumps(list(allowed))}" for grant, allowed in grants.items() if allowed]
    return "\n".join(lines) + "\n"


def read_keys(path: Path) -> KeyRing:
    """Read a TOML file of keys: a table `[keys.NAME]` for each, as `key_lines` writes it."""
    try:
        document = tomllib.loads(read_file(path, "API keys").decode("utf-8"))
    except (ValueError, RecursionError) as error:  # invalid TOML or UTF-8; or nested too deeply
        advice = f" A name's second key goes into its list: {_SECOND}." if "twice" in str(error) else ""
        raise FileProblem(f"{path} (API keys) is not TOML: {error}.{advice}") from error
    tables = document.pop("keys", {})
    if document or not isinstance(tables, Mapping) or not tables:
        unknown = f"has {listed(map(shown, document))}" if document else "has no keys"
        raise FileProblem(
            f"{path} (API keys) {unknown}; it needs a table [keys.NAME] for each key, and at least one key."
        )
    try:
        keys = [key for name, table in tables.items() for key in _keys(name, table)]
    except ValueError as error:
        raise FileProblem(f"{path} (API keys): {error}") from error
    names: dict[str, str] = {}
    for key in keys:
        if (other := names.setdefault(key.sha256, key.name)) != key.name:
            raise FileProblem(f"{path} (API keys): {other} and {key.name} are the same key; give each its own.")
    return KeyRing(keys)


_QUOTAS = tuple(field.name for field in fields(Quotas))
_ENTRIES = ("sha256", "expires", *_QUOTAS, *NO_GRANTS)


def _keys(name: str, table: Any) -> list[Key]:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.80} is not a valid name; allowed: 1 to 64 letters, digits, '_' and '-'.")
    if not isinstance(table, Mapping):
        raise ValueError(f"{name} is not a table; write [keys.{name}].")
    if unknown := [entry for entry in table if entry not in _ENTRIES]:
        raise ValueError(f"{name} has {listed(map(shown, unknown))}; allowed: {', '.join(_ENTRIES)}.")
    digests, expires = _strings(table.get("sha256")), table.get("expires")
    if not digests or not all(map(_DIGEST.fullmatch, digests)):
        raise ValueError(
            f"{name} needs sha256, 64 lower-case hex digits, or a list of them; 'dragoman key new' creates one."
        )
    if len(set(digests)) < len(digests):
        raise ValueError(f"{name} has the same sha256 twice; leave one out.")
    if expires is not None and not (isinstance(expires, datetime) and expires.tzinfo):
        raise ValueError(
            f"{name} has expires = {shown(expires)}; it must be a time with a time zone, such as 2030-01-31T00:00:00Z."
        )
    for quota in _QUOTAS:
        number = table.get(quota, 0)
        if type(number) is not int or not 0 <= number <= sys.maxsize:
            raise ValueError(f"{name} has {quota} = {shown(number)}; allowed: whole numbers from 0 (no limit).")
    quotas = Quotas(**{quota: table[quota] for quota in _QUOTAS if quota in table})
    allowed = {grant: _granted(name, grant, table[grant]) for grant in NO_GRANTS if grant in table}
    grants = Grants(name, **allowed) if allowed else EVERYTHING
    return [Key(name, sha256, expires, quotas, grants) for sha256 in digests]


def _granted(name: str, grant: str, given: Any) -> frozenset[str]:
    names = _strings(given) if isinstance(given, list) else ()
    if not names:
        raise ValueError(
            f"{name} has {grant} = {shown(given)}; allowed: a list of names, or leave it out to allow all."
        )
    return frozenset(names)


def _strings(given: Any) -> Sequence[str]:
    given = [given] if isinstance(given, str) else given
    return given if isinstance(given, list) and all(isinstance(each, str) and each for each in given) else ()


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
