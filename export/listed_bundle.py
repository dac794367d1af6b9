"""Adds a shortlist to a bundle: its graphs then choose the tokens of a translation from those of its source."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
from sacrebleu.metrics.bleu import BLEU

from export.bundle_writer import checksums
from export.engine_decode import decode_golden, decode_texts
from export.graphs.listing import list_graphs
from export.graphs.weights_file import WeightsFile
from export.quantization.checks import check_fused
from export.quantization.interface import declared
from export.shortlist import Shortlist
from service.bundle import fused_io
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import LanguagePair, ModelShape
from service.text.tokenizers import load_tokenizer, of_pair


@dataclass(frozen=True, slots=True)
class Cost:
    """What a shortlist changes: the share of texts with the same translation and, with references, BLEU.

    `most` is the most tokens that a translation may be chosen from.
    """

    num_texts: int
    same: float
    most: int
    bleu: float | None = None
    bleu_without: float | None = None

    def line(self) -> str:
        """Return a line for the terminal."""
        line = f"{self.same:.1%} of {self.num_texts} texts have the same translation with shortlists"
        if self.bleu is None or self.bleu_without is None:
            return line
        return f"{line}; BLEU {self.bleu:.2f}, {self.bleu_without:.2f} without"


def require_listable(manifest: Manifest) -> None:
    """Check, before any work, that a bundle can be given a shortlist."""
    if manifest.model.has_shortlists:
        raise ValueError("it has a shortlist already; convert the checkpoint again to get rid of it")


def listed(
    directory: Path, manifest: Manifest, shortlist: Shortlist, texts: Sequence[str], references: Sequence[str] = ()
) -> tuple[Manifest, Cost]:
    """Add a shortlist to the files of a bundle; return its manifest, which is not saved, and what that costs.

    The golden sentences get the translations that it has from now on. The cost is measured on `texts`, of which there
    are `references`, or none.
    """
    require_listable(manifest)
    before = decode_texts(directory, manifest, texts)
    manifest = _with_shortlist(directory, manifest, shortlist)
    after = decode_texts(directory, manifest, texts)
    same = sum(map(str.__eq__, before, after)) / max(len(texts), 1)
    scores = [BLEU().corpus_score(outputs, [references]).score if references else None for outputs in (after, before)]
    cost = Cost(len(texts), round(same, 4), manifest.model.shortlist_size, *scores)
    verification = {**manifest.verification, "shortlist": dataclasses.asdict(cost)}
    return dataclasses.replace(manifest, verification=verification), cost


def _with_shortlist(directory: Path, manifest: Manifest, shortlist: Shortlist) -> Manifest:
    most = shortlist.most(manifest.limits.max_source_tokens, manifest.model.vocabulary_size)
    manifest = dataclasses.replace(manifest, model=dataclasses.replace(manifest.model, shortlist_size=most))
    with WeightsFile(directory, appends=True) as file:
        (_list_fused_graphs if manifest.is_fused else list_graphs)(directory, manifest, shortlist, file)
    tokenizer = load_tokenizer(manifest.tokenizer, directory)
    golden = [
        dataclasses.replace(
            each,
            output_ids=output,
            translation=of_pair(tokenizer, LanguagePair(each.source_language_code, each.target_language_code)).decode(
                manifest.without_end(output)
            ),
        )
        for each, output in zip(manifest.golden, decode_golden(directory, manifest), strict=True)
    ]
    return dataclasses.replace(manifest, golden=tuple(golden), checksums=checksums(directory))


def _list_fused_graphs(directory: Path, manifest: Manifest, shortlist: Shortlist, file: WeightsFile) -> None:
    model, graphs = manifest.model, manifest.graphs
    own = {
        "shortlists": 1,
        "vocabulary_size": model.vocabulary_size,
        "one_vocabulary": int(bool(manifest.architecture.get("share_embeddings"))),
    }
    constants = [
        file.add("shortlist.always", shortlist.always),
        file.add("shortlist.offsets", shortlist.offsets),
        file.add("shortlist.ids", shortlist.ids),
    ]
    _change(directory / graphs.encoder, fused_io.ENCODE, own, constants, model)
    _change(directory / graphs.decoder_step, fused_io.DECODE, {"shortlists": 1}, [], model)


def _change(
    path: Path, operator: str, attributes: dict[str, int], constants: Sequence[onnx.TensorProto], model: ModelShape
) -> None:
    document = onnx.load(path, load_external_data=False)
    graph, (node,) = document.graph, document.graph.node
    inputs, _ = declared(operator, model)
    node.attribute.extend(onnx.helper.make_attribute(name, value) for name, value in attributes.items())
    names = [*fused_io.inputs_of(operator, model), *node.input[len(graph.input) :], *(each.name for each in constants)]
    del node.input[:], graph.input[:]
    node.input.extend(names)
    graph.input.extend(inputs)
    graph.initializer.extend(constants)
    path.write_bytes(document.SerializeToString(deterministic=True))
    check_fused(path, operator, model)
