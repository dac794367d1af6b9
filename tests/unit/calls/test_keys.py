"""The file of API keys: what is accepted, what is rejected, and how."""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.calls.keys import Quotas, key_lines, new_key, read_keys, unknown_names
from service.config.watched_files import FileProblem
from service.domain.grants import EVERYTHING

DIGEST = "ab" * 32


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path, alice, bob = tmp_path / "keys.toml", new_key(), new_key()
    expires = datetime(2030, 1, 31, tzinfo=UTC)
    path.write_text(key_lines(alice, "alice", expires, Quotas(60, 1000, 2)) + key_lines(bob, "bob-2", None, Quotas()))
    keys = read_keys(path)
    assert keys.names.keys() == {"alice", "bob-2"}
    found = keys.find(alice)
    assert found is not None
    assert (found.name, found.expires, found.quotas) == ("alice", expires, Quotas(60, 1000, 2))
    assert found.sha256 == hashlib.sha256(alice.encode()).hexdigest()
    assert keys.find(alice + "x") is None
    assert keys.find("") is None
    assert alice not in path.read_text()


def test_a_name_may_have_two_keys_while_its_caller_changes(tmp_path: Path) -> None:
    path, old, new = tmp_path / "keys.toml", new_key(), new_key()
    digests = [hashlib.sha256(key.encode()).hexdigest() for key in (old, new)]
    path.write_text(f"[keys.alice]\nsha256 = {digests}\ntokens_per_minute = 7\n")
    keys = read_keys(path)
    assert keys.names == {"alice": {digest[:8] for digest in digests}}
    found = [keys.find(key) for key in (old, new)]
    assert [each and (each.name, each.quotas.tokens_per_minute) for each in found] == [("alice", 7)] * 2


def test_models_and_glossaries_may_be_granted_by_name(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    granted = {"models": ["en-de", "de-en"], "glossaries": ["brand"]}
    path.write_text(key_lines("a", "shop", None, Quotas(), granted) + key_lines("b", "all", None, Quotas()))
    keys = read_keys(path)
    shop, everything = keys.find("a"), keys.find("b")
    assert shop is not None
    assert everything is not None
    assert [shop.grants.allows_model(name) for name in ("en-de", "de-en", "en-hi", "")] == [True, True, False, False]
    assert [shop.grants.allows_glossary(name) for name in ("brand", "other")] == [True, False]
    assert everything.grants is EVERYTHING
    assert unknown_names(keys, ["en-de", "en-hi"], ["brand"]) == [
        "key shop may use model 'de-en', which this server does not have; it has en-de, en-hi"
    ]
    assert unknown_names(keys, ["en-de", "de-en"], []) == [
        "key shop may use glossary 'brand', which this server does not have; it has none"
    ]
    assert unknown_names(keys, ["en-de", "de-en"], ["brand"]) == []


def test_keys_are_long_random_and_known_by_their_prefix() -> None:
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(key.startswith("dgm_") and len(key) >= 4 + 43 for key in keys)


def test_a_key_expires_at_its_time(tmp_path: Path) -> None:
    path, key = tmp_path / "keys.toml", new_key()
    for seconds, has_expired in ((-2, True), (60, False)):
        path.write_text(key_lines(key, "alice", datetime.now(UTC) + timedelta(seconds=seconds), Quotas()))
        found = read_keys(path).find(key)
        assert found is not None
        assert found.has_expired is has_expired


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"has no keys; it needs a table \[keys\.NAME\] for each key, and at least one key\.$"),
        ("keys = 3", r"has no keys"),
        ("[keys.a", r"is not TOML: Expected .*\(at end of document\)"),
        ("\udcff", r"is not TOML: .*utf-8"),
        ("[key.a]", r"has 'key'; it needs a table"),
        ("keys.a = 3", r": a is not a table; write \[keys\.a\]\.$"),
        ("[keys.a]", r": a needs sha256, 64 lower-case hex digits, or a list of them; 'dragoman key new' c"),
        ("[keys.a]\nsha256 = []", r": a needs sha256, 64 lower-case hex digits, or a list of them"),
        (f'[keys.a]\nsha256 = ["{DIGEST}", 3]', r": a needs sha256, 64 lower-case hex digits, or a list of them"),
        (f'[keys.a]\nsha256 = ["{DIGEST}", "{DIGEST}"]', r": a has the same sha256 twice; leave one out\.$"),
        (
            f'[keys.a]\nsha256 = "{DIGEST}"\n[keys.a]\n',
            r"twice .*\. A name's second key goes into its list: sha256 = \[\"OLD\", \"NEW\"\]\.$",
        ),
        (
            f'[keys.a]\nsha256 = "{DIGEST}"\nmodels = "en-de"',
            r": a has models = 'en-de'; allowed: a list of names, or leave it out to allow all\.$",
        ),
        (f'[keys.a]\nsha256 = "{DIGEST}"\nmodels = []', r": a has models = \[\]; allowed: a list of names"),
        (f'[keys.a]\nsha256 = "{DIGEST}"\nglossaries = [""]', r": a has glossaries = \[''\]; allowed: a list"),
        (f'[keys.a]\nsha256 = "{DIGEST}"\nglossary = ["b"]', r": a has 'glossary'; allowed: .*models, glossaries"),
        (f'[keys.a]\nsha256 = "{DIGEST.upper()}"', r": a needs sha256"),
        (f'[keys."a b"]\nsha256 = "{DIGEST}"', r": 'a b' is not a valid name; allowed: 1 to 64 letters"),
        (f'[keys.a]\nsha256 = "{DIGEST}"\nquota = 1', r": a has 'quota'; allowed: sha256, expires, requests_per_"),
        (f'[keys.a]\nsha256 = "{DIGEST}"\nexpires = 2030-01-31', r": a has expires = 2030-01-31; it must be a time wi"),
        (f'[keys.a]\nsha256 = "{DIGEST}"\nconcurrent_calls = true', r": a has concurrent_calls = True; allowed: w"),
        (f'[keys.a]\nsha256 = "{DIGEST}"\ntokens_per_minute = -1', r": a has tokens_per_minute = -1; allowed: who"),
        (
            f'[keys.a]\nsha256 = "{DIGEST}"\nconcurrent_calls = 0x{"f" * 4000}',
            r": a has concurrent_calls = a number of th",
        ),
        (f'[keys.a]\nsha256 = "{DIGEST}"\nexpires{".a" * 900} = 1', r": a has expires = \{'a': \{'a': "),
        ("keys = " + "[" * 900 + "]" * 900, r"is not TOML: maximum recursion depth exceeded"),
        (f'[keys.a]\nsha256 = "{DIGEST}"\n[keys.b]\nsha256 = "{DIGEST}"', r": a and b are the same key; give each"),
    ],
)
def test_a_file_with_anything_wrong_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(FileProblem, match=message) as raised:
        read_keys(path)
    assert str(raised.value).startswith(f"{path} (API keys)")
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match=r"keys\.toml \(API keys\) can't be read: No such file or directory\.$"):
        read_keys(tmp_path / "keys.toml")


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "ä", "a\n"])
def test_a_keys_name_is_checked_before_it_is_written(name: str) -> None:
    with pytest.raises(ValueError, match=r"is not a valid key name; allowed: 1 to 64 letters, digits, '_' and '-'\.$"):
        key_lines(new_key(), name, None, Quotas())
