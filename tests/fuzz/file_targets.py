"""Targets: files that operators write, and files that may be damaged or made by others."""

import base64
import dataclasses
import json
import os
import ssl
from datetime import datetime
from pathlib import Path
from unittest.mock import patch

from service.bundle.checksums import check_intact
from service.bundle.errors import BundleError
from service.bundle.graph_file import check_graph
from service.bundle.manifest import MANIFEST_NAME, Manifest
from service.bundle.transfer.bundles import transfer
from service.calls.keys import read_keys
from service.config.server_config import ENVIRONMENT_PREFIX, SETTINGS
from service.config.sources import FILE_VARIABLE, SettingsError, resolve, toml_value
from service.config.watched_files import FileProblem
from service.faces.grpc.certificate import read_certificate
from service.text.glossary import GlossaryError, read_glossary
from service.text.sentencepiece_model import SentencePieceTokenizer
from service.text.terms import find_terms
from service.text.tokenizer_json import JsonTokenizer
from service.text.vocabulary import parse_vocabulary
from tests.fuzz.models import MANIFEST, folder
from tests.fuzz.properties import check_message
from tests.fuzz.source import Source


def manifest(data: bytes) -> None:
    """Check that a manifest is rejected in one line, or is unchanged after saving and loading."""
    directory = _directory("manifest")
    (directory / MANIFEST_NAME).write_bytes(data)
    try:
        found = Manifest.load(directory)
    except BundleError as error:
        check_message(error)
        return
    assert list(found.pairs())
    try:
        found.save(directory)
    except RecursionError:  # export's measurements may be nested as deeply as JSON can be read
        return
    again = Manifest.load(directory)
    assert repr(again) == repr(found)  # NaN does not equal itself


def bundle_files(data: bytes) -> None:
    """Check that a manifest's file names cannot point elsewhere, and that missing or wrong files give one line."""
    source = Source(data)
    names = [source.line() for _ in range(1 + source.number() % 4)]
    directory = _directory("repository") / "tiny" / "1"
    directory.mkdir(parents=True, exist_ok=True)
    document = dataclasses.asdict(MANIFEST) | {"checksums": {**MANIFEST.checksums, **dict.fromkeys(names, "0" * 64)}}
    (directory / MANIFEST_NAME).write_text(json.dumps(document), encoding="utf-8")
    try:
        check_intact(directory, Manifest.load(directory))
        raise AssertionError("no file is there, and that is fine?")
    except BundleError as error:
        check_message(error)
    destination = _directory("destination")
    try:
        transfer(directory.parents[1], destination)
        raise AssertionError("no file is there, and that is fine?")
    except BundleError as error:
        check_message(error)
    left = [path for path in destination.rglob("*") if not path.is_dir()]
    assert not left, left


def graph_file(data: bytes) -> None:
    """Check that a file in a graph's place is rejected in one line, or does not read other files."""
    path = _directory("graphs") / "graph.onnx"
    path.write_bytes(data)
    for fused in ("", "Decode"):
        try:
            check_graph(path, ("weights",), fused)
        except BundleError as error:
            check_message(error)


def vocabulary(data: bytes) -> None:
    """Check that a `vocab.json` is rejected in one line, or gives each piece a unique id."""
    try:
        found = parse_vocabulary(data)
    except ValueError as error:
        check_message(error)
        return
    assert found and len(set(found.values())) == len(found)
    assert all(type(token_id) is int and token_id >= 0 for token_id in found.values())


def sentencepiece_file(data: bytes) -> None:
    """Check that a damaged model is rejected, or can be used."""
    file = _directory("tokenizers") / "damaged.model"
    file.write_bytes(data)
    try:
        tokenizer = SentencePieceTokenizer(file)
    except BundleError:
        return
    tokenizer.decode(tokenizer.encode("Where is the train station?"))


def tokenizer_json_file(data: bytes) -> None:
    """Check that a damaged `tokenizer.json` is rejected, or can be used."""
    file = _directory("tokenizers") / "damaged.json"
    file.write_bytes(data)
    try:
        tokenizer = JsonTokenizer(file)
    except BundleError:
        return
    tokenizer.decode(tokenizer.encode("Where is the train station?"))


def configuration(data: bytes) -> None:
    """Check that a configuration file is rejected with a line per problem, or can be written and read again."""
    path = _directory("settings") / "config.toml"
    path.write_bytes(data)
    with patch.dict(os.environ, clear=True):
        try:
            settings = resolve({}, path)
        except SettingsError as error:
            assert error.problems and error.is_in_file
            for problem in error.problems:
                check_message(problem)
            return
    lines = [f"{name} = {toml_value(getattr(settings.config, name))}\n" for name in SETTINGS]
    path.write_text("".join(lines), encoding="utf-8")
    with patch.dict(os.environ, clear=True):
        assert resolve({}, path).config == settings.config


def environment(data: bytes) -> None:
    """Check that an environment is rejected with a line per problem, or is a valid configuration."""
    source = Source(data)
    variables = {}
    names = [setting.variable for setting in SETTINGS.values()]
    while line := source.line().replace("\0", ""):
        name = f"{ENVIRONMENT_PREFIX}{line.partition('=')[0]}" if "=" in line else source.pick(names)
        if name != FILE_VARIABLE:
            variables[name.encode("utf-8", "ignore").decode()] = line.partition("=")[2] or line
    with patch.dict(os.environ, variables, clear=True):
        try:
            resolve({}, None)
        except SettingsError as error:
            assert error.problems and not error.is_in_file
            for problem in error.problems:
                check_message(problem)


def api_keys(data: bytes) -> None:
    """Check that a key file is rejected in one line, or its keys can be checked for expiry."""
    path = _directory("keys") / "keys.toml"
    path.write_bytes(data)
    try:
        ring = read_keys(path)
    except FileProblem as error:
        check_message(error)
        return
    assert ring.names
    assert ring.find(data.decode("utf-8", "surrogateescape")) is None
    assert all(isinstance(key.has_expired, bool) for key in ring)


def glossary(data: bytes) -> None:
    """Check that a glossary is rejected in one line that lists what is wrong, or its terms can be searched for."""
    source = Source(data)
    name = source.pick(("own.en-de.tsv", "own.en-de.csv", "own.en-pt_BR.tsv"))
    path = _directory("glossaries") / name
    body = source.bytes()
    path.write_bytes(body)
    try:
        found = read_glossary(path)
    except GlossaryError as error:
        check_message(error, 20_000)
        return
    for term in found.terms:
        assert term.source.strip() == term.source != ""
        assert term.target is None or term.target.strip() == term.target != ""
    find_terms(body.decode("utf-8-sig"), found.index)


def certificate(data: bytes) -> None:
    """Check that a certificate is rejected, or has dates."""
    source = Source(data)
    wraps = source.pick((False, True))
    body = source.bytes()
    pem = ssl.DER_cert_to_PEM_cert(body).encode() if wraps else body
    try:
        found = read_certificate(pem)
    except ValueError:
        return
    assert isinstance(found.not_before, datetime) and isinstance(found.not_after, datetime)
    assert base64.b64encode(body)


def _directory(name: str) -> Path:
    directory = folder() / name
    directory.mkdir(exist_ok=True)
    return directory
