"""Invalid manifests are rejected immediately with one line, whatever they contain."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from service.bundle.errors import BundleError, one_line
from service.bundle.manifest import MAX_MANIFEST_BYTES, Manifest


@pytest.fixture
def document(tiny_bundle: Path) -> Any:
    return json.loads((tiny_bundle / "manifest.json").read_text(encoding="utf-8"))


def refusal(directory: Path) -> str:
    with pytest.raises(BundleError) as raised:
        Manifest.load(directory)
    message = str(raised.value)
    assert str(directory) in message
    assert len(message.splitlines()) == 1
    assert len(message) < 1000
    return message


def refusal_of(document: Any, directory: Path) -> str:
    (directory / "manifest.json").write_text(json.dumps(document), encoding="utf-8")
    return refusal(directory)


@pytest.mark.timeout(20)
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.json")
    assert "manifest.json can't be read: it is a pipe, not a file." in refusal(tmp_path)


@pytest.mark.timeout(20)
def test_a_device_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").symlink_to("/dev/zero")
    assert "it is a device, not a file" in refusal(tmp_path)


def test_no_more_is_read_than_a_manifest_may_have(tmp_path: Path) -> None:
    with (tmp_path / "manifest.json").open("wb") as file:
        file.truncate(100 * MAX_MANIFEST_BYTES)
    assert "is larger than" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model.num_decoder_layers", 10_000_000),
        ("model.num_heads", 0),
        ("model.head_size", 10**9),
        ("model.vocabulary_size", -1),
        ("model.state_size", -8),
        ("model.state_size", 12),
        ("model.state_size", 8 * 10**7),
        ("model.shortlist_size", -1),
        ("model.shortlist_size", 10**6),
        ("limits.max_source_tokens", 10**400),
        ("limits.max_output_tokens", 10**7),
        ("generation.beam_size", 0),
        ("generation.beam_size", 2**31),
        ("generation.num_hypotheses", -1),
        ("generation.length_penalty", float("nan")),
        ("generation.length_penalty", float("inf")),
        ("generation.length_penalty", 10**400),
        ("tokenizer.pad_id", -1),
        ("tokenizer.unk_id", 2**64),
        ("tokenizer.source_eos_id", -1),
        ("tokenizer.source_unk_id", -1),
        ("suppressed_ids", [-5]),
    ],
)
def test_numbers_beyond_any_model_are_refused(document: Any, tmp_path: Path, field: str, value: Any) -> None:
    part, _, name = field.rpartition(".")
    (document[part] if part else document)[name] = value
    assert field in refusal_of(document, tmp_path)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"top_k": 65}, "generation.options[top_k] is 65; expected a number from 1 to 64."),
        ({"top_k": 1.5}, "generation.options[top_k] is 1.5"),
        ({"top_k": True}, "generation.options['top_k'] is True"),
        ({"top_p": float("nan")}, "generation.options[top_p] is nan"),
        ({"temperature": 10**400}, "generation.options[temperature]"),
        ({"beam_size": 4}, "generation.options has 'beam_size'; this service knows "),
        ({"max_output_tokens": 4}, "Upgrade the service"),
        ({"made_up": 1}, "generation.options has 'made_up'"),
    ],
)
def test_options_are_those_of_the_table(document: Any, tmp_path: Path, options: dict[str, Any], part: str) -> None:
    document["generation"]["options"] = options
    assert part in refusal_of(document, tmp_path)


def test_a_bundle_may_set_further_options(document: Any) -> None:
    document["generation"]["options"] = {"max_repeats": 3, "max_length_ratio": 2}
    assert Manifest.from_document(document, "").generation.options == {"max_repeats": 3, "max_length_ratio": 2}
    del document["generation"]["options"]
    assert Manifest.from_document(document, "").generation.options == {}


@pytest.mark.parametrize("prefix", [[-1], [2**70], [100_000]])
def test_prefixes_are_tokens_of_the_model(document: Any, tmp_path: Path, prefix: list[int]) -> None:
    document["languages"][0]["target_prefix_ids"] = prefix
    assert "prefix has the id" in refusal_of(document, tmp_path)


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "\0", "\ud800", 300 * "x"])
@pytest.mark.parametrize(
    "field",
    ["name", "precision", "tokenizer.kind", "languages.0.target_language_code", "graphs.encoder", "tokenizer.file"],
)
def test_names_are_printable(document: Any, tmp_path: Path, field: str, name: str) -> None:
    *path, last = field.split(".")
    part = document
    for step in path:
        part = part[int(step)] if step.isdigit() else part[step]
    part[last] = name
    document["checksums"][name] = 64 * "0"
    refusal_of(document, tmp_path)


@pytest.mark.parametrize("field", ["licence", "precision"])
def test_half_a_character_is_refused_wherever_it_stands(document: Any, tmp_path: Path, field: str) -> None:
    document[field] = "half \ud800"
    assert f"manifest.{field} is" in refusal_of(document, tmp_path)


@pytest.mark.timeout(20)
def test_languages_without_end_are_refused(document: Any, tmp_path: Path) -> None:
    document["any_to_any"] = [{"code": f"x{number}"} for number in range(10_000)]
    assert "any_to_any has 10000 entries; allowed: 1000" in refusal_of(document, tmp_path)
    document["any_to_any"] = []
    document["languages"] *= 30_000
    assert "languages has 30000 entries; allowed: 10000" in refusal_of(document, tmp_path)


def test_the_longest_target_prefix_is_that_of_any_pair(document: Any, tiny_bundle: Path, tmp_path: Path) -> None:
    assert Manifest.load(tiny_bundle).longest_target_prefix == 0
    document["languages"][0]["target_prefix_ids"] = [5, 6]
    document["any_to_any"] = [{"code": "it"}, {"code": "es", "target_prefix_ids": [5, 6, 7]}]
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    assert Manifest.load(tmp_path).longest_target_prefix == 3


def test_what_stands_before_and_after_a_text(document: Any) -> None:
    document["languages"][0] |= {"source_prefix_ids": [5], "source_suffix_ids": [6, 7]}
    document["any_to_any"] = [
        {"code": "it", "source_prefix_ids": [20], "into_prefix_ids": [30]},
        {"code": "es", "into_prefix_ids": [31], "target_prefix_ids": [41]},
    ]
    manifest = Manifest.from_document(document, "")
    eos_id = manifest.tokenizer.eos_id
    sources = [(manifest.source_ids((8, 9), pair), pair.target_prefix_ids) for pair in manifest.pairs()]
    expected = [((5, 8, 9, eos_id, 6, 7), ()), ((20, 31, 8, 9, eos_id), (41,)), ((30, 8, 9, eos_id), ())]
    assert sources == [*expected[:1], *sources[1:-2], *expected[1:]]


@pytest.mark.parametrize("field", ["source_suffix_ids", "into_prefix_ids"])
def test_ids_beside_a_text_are_ids(document: Any, tmp_path: Path, field: str) -> None:
    document["any_to_any"] = [{"code": "it"}, {"code": "es"}]
    entries = document["languages" if field == "source_suffix_ids" else "any_to_any"]
    entries[0][field] = [-1]
    assert "a prefix or suffix has the id -1" in refusal_of(document, tmp_path)


def test_graphs_are_files_of_the_bundle_each_once(document: Any, tmp_path: Path) -> None:
    assert Manifest.from_document(document, "").graphs.files == ("encoder.onnx", "decoder_step.onnx", "alignment.onnx")
    document["graphs"] |= {"decoder_step": "d.onnx", "alignment": "d.onnx", "of a later version": 1}
    assert "checksums lacks 'd.onnx'" in refusal_of(document, tmp_path)
    document["checksums"] |= {"d.onnx": 64 * "0"}
    assert Manifest.from_document(document, "").graphs.files == ("encoder.onnx", "d.onnx")


def test_fields_of_later_versions_are_ignored(document: Any, tiny_bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bundle, tmp_path, dirs_exist_ok=True)
    document["new"] = {"\ud800": float("nan")}
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    assert Manifest.load(tmp_path) == Manifest.load(tiny_bundle)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("schema_version", [[]] * 9999, "schema_version is [[], "),
        ("schema_version", 2, "schema_version is 2, this service reads up to 1; upgrade the service or export the"),
        ("checksums", {"a\nb": 5}, r"manifest.checksums['a\nb'] is 5; expected str"),
        ("checksums", {"a\x1cb": ""}, r"file name 'a\x1cb' is outside the bundle or not a file name"),
        ("checksums", {"ä" * 128: ""}, "allowed: plain relative names of at most 255 bytes"),
        ("checksums", {"../a": ""}, "file name '../a' is outside the bundle or not a file name"),
    ],
)
def test_what_can_not_be_used_is_refused(document: Any, tmp_path: Path, name: str, content: Any, message: str) -> None:
    document[name] = {**document[name], **content} if isinstance(content, dict) else content
    assert message in refusal_of(document, tmp_path)


@pytest.mark.parametrize("value", ["1" + 5000 * "0", "[" * 100_000, "[" * 980 + "]" * 980])
def test_numbers_without_end_and_lists_too_deep_are_refused(tmp_path: Path, value: str) -> None:
    (tmp_path / "manifest.json").write_text(f'{{"schema_version": {value}}}')
    refusal(tmp_path)


def test_an_error_is_told_in_one_printable_line() -> None:
    assert one_line(ValueError("a\n  b\x1b[31m\x7f\ud800é")) == "a b\\x1b[31m\\x7f\\ud800é"
    assert len(one_line(ValueError(100_000 * "x"))) == 1000
