"""Describes a bundle, for people and for programs, from its manifest and its files."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from export.importers.model_card import with_its_limit
from service.bundle.checksums import mismatches
from service.bundle.manifest import Manifest
from service.domain.errors import counted

_MAX_LANGUAGES = 12


def describe(directory: Path) -> dict[str, Any]:
    """Return everything that `inspect` shows, as plain JSON values."""
    manifest = Manifest.load(directory)
    faults = mismatches(directory, manifest.checksums)
    files = {}
    for name, checksum in sorted(manifest.checksums.items()):
        path = directory / name
        files[name] = {"bytes": path.stat().st_size if path.is_file() else None, "sha256": checksum}
    return {
        "name": manifest.name,
        "licence": manifest.licence or "unknown",
        "precision": manifest.precision,
        "architecture": manifest.architecture,
        "language_pairs": [f"{pair.source_language_code}-{pair.target_language_code}" for pair in manifest.languages],
        "any_to_any": [language.code for language in manifest.any_to_any],
        "limits": {
            "max_source_tokens": manifest.limits.max_source_tokens,
            "max_output_tokens": manifest.limits.max_output_tokens,
        },
        "tokenizer": manifest.tokenizer.kind,
        "generation": {
            "beam_size": manifest.generation.beam_size,
            "length_penalty": manifest.generation.length_penalty,
            "stops_early": manifest.generation.stops_early,
            "narrows": manifest.generation.narrows,
            "forces_end": manifest.generation.forces_end,
            **manifest.generation.options,
        },
        "verification": manifest.verification,
        "num_golden": len(manifest.golden),
        "files": files,
        "faults": faults,
        "checkpoint_sha256": manifest.checkpoint_sha256,
        "tools": manifest.tools,
        "schema_version": manifest.schema_version,
    }


def lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield the same as lines for a terminal."""
    yield f"{document['name']}: {document['precision']}, licence {with_its_limit(document['licence'])}"
    architecture = document["architecture"]
    if architecture:
        sizes = {name: _of_both_sides(architecture, name) for name in ("d_model", "d_ff", "num_heads")}
        yield (
            f"architecture  {architecture['family']}, {architecture['num_parameters'] / 1e6:.1f} M parameters, "
            f"{architecture['num_encoder_layers']}+{architecture['num_decoder_layers']} layers, "
            f"d_model {sizes['d_model']}, d_ff {sizes['d_ff']}, {sizes['num_heads']} heads, "
            f"{architecture['norm']}-norm, {architecture['activation']}"
        )
    if changes := architecture.get("changes"):
        yield f"changed       {json.dumps(changes)[1:-1]}"
    if document["language_pairs"]:
        yield f"languages     {_shortened(document['language_pairs'])}"
    if document["any_to_any"]:
        yield f"languages     each into each other: {_shortened(document['any_to_any'])}"
    limits, generation = document["limits"], document["generation"]
    yield f"limits        {limits['max_source_tokens']} source and {limits['max_output_tokens']} output tokens"
    yield f"generation    beam {generation['beam_size']}, length penalty {generation['length_penalty']}"
    verification = document["verification"]
    if int8 := verification.get("int8"):
        yield (
            f"verified      int8 against float on {counted(int8['num_sentences'], 'sentence')}: the same next token at "
            f"{int8['agreement']:.1%} of {int8['num_positions']} positions, log-probabilities "
            f"{int8['divergence']:.3f} off per token, largest gap {int8['largest_gap']:.2f}; "
            f"{counted(document['num_golden'], 'golden sentence')}"
        )
    elif verification:
        yield (
            f"verified      {verification['num_positions']} positions against the model, largest error "
            f"{verification['max_relative_error']:.1e} of the logits' range, "
            f"{counted(verification['num_ties'], 'tie')}; {counted(document['num_golden'], 'golden sentence')}"
        )
    if alignment := verification.get("alignment"):
        yield (
            f"alignment     decoder layer {alignment['layer']}, heads {', '.join(map(str, alignment['heads']))}: "
            f"{alignment['share_found']:.0%} of {alignment['num_pieces']} identical pieces point at each other"
        )
    if cost := verification.get("shortlist"):
        yield (
            f"shortlist     up to {cost['most']} tokens of a source; {cost['same']:.1%} of "
            f"{counted(cost['num_texts'], 'text')} keep their translation"
        )
    if fidelity := verification.get("fidelity"):
        line = f"fidelity      {counted(fidelity['num_sentences'], 'sentence')} as {fidelity['reference']}: greedy "
        line += f"({counted(fidelity['num_greedy_ties'], 'tie')})"
        if fidelity["beam_size"] > 1:
            line += f", beam {fidelity['beam_size']} ({counted(fidelity['num_beam_ties'], 'tie')})"
        yield line
    for name, file in document["files"].items():
        size = "missing" if file["bytes"] is None else f"{file['bytes'] / 1e6:.1f} MB"
        yield f"file          {name:<24} {size:>10}  sha256 {file['sha256'][:16]}..."
    tools = ", ".join(f"{name} {version}" for name, version in document["tools"].items())
    yield f"made          from weights {document['checkpoint_sha256'][:16]}... with {tools}"
    yield "intact        " + ("; ".join(document["faults"]) or "all files match their checksums")


def _shortened(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_LANGUAGES} more" if len(names) > _MAX_LANGUAGES else ""
    return ", ".join(names[:_MAX_LANGUAGES]) + more


def _of_both_sides(architecture: Mapping[str, Any], name: str) -> str:
    """Return a size of the encoder and, if the decoder has another, of both."""
    sizes = dict.fromkeys((architecture[name], architecture.get(f"decoder_{name}") or architecture[name]))
    return "/".join(map(str, sizes))
