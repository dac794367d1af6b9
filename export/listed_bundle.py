"""Adds a shortlist to a bundle: its graphs then choose the tokens of a translation from those of its source."""

import dataclasses
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from export.bundle_writer import bundle_bytes, check_destination, checksums, staged_bundle
from export.engine_decode import decode_golden, decode_texts
from export.graphs.listing import list_graphs
from export.graphs.weights_file import WeightsFile
from export.importers import stored_file
from export.place import check_name, model_name
from export.quantization.checks import check_fused
from export.quantization.interface import declared
from export.shortlist import MOST_LIST_BYTES, Shortlist, read_shortlist
from export.shortlist_building import count_translations, read_lexicon
from export.stages import Stages
from service.bundle import fused_io
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import LanguagePair, ModelShape
from service.engine.runtime.kernels import find_kernels
from service.text.tokenizers import load_tokenizer, of_pair

_BINARY = ".bin"
Score = Callable[[Sequence[str]], float]  # of the translations of all texts


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a shortlist: the share of `same` translations, `most` tokens to choose from, BLEU with references."""

    num_texts: int
    same: float
    most: int
    bleu: float | None = None
    bleu_without: float | None = None

    def line(self) -> str:
        line = f"{self.same:.1%} of {self.num_texts} texts have the same translation with shortlists"
        if self.bleu is None or self.bleu_without is None:
            return line
        return f"{line}; BLEU {self.bleu:.2f}, {self.bleu_without:.2f} without"


def write_listed(
    bundle: Path,
    destination: Path,
    texts: Path | None,
    lexicon: Path | None,
    first: int,
    best: int,
    check: Path | None,
    say: Callable[[str], None],
    *,
    force: bool = False,
) -> Manifest:
    """Write a bundle to `destination` with a shortlist, made of translations of `texts` or read from `lexicon`.

    `first` tokens are always allowed, `best` by each source token. `check` has lines of source, tab and reference.
    """
    clock = Stages(say)
    check_destination(destination, force=force)
    manifest = Manifest.load(bundle)
    manifest = dataclasses.replace(manifest, name=model_name(destination) or manifest.name)
    check_name(destination, manifest.name)
    _require_listable(manifest)
    find_kernels()  # for the engine
    pairs = [] if check is None else [line.split("\t") for line in _lines(check)]
    if any(len(pair) < 2 for pair in pairs):
        raise ValueError(f"{check} has a line without a tab; expected a source, a tab and a reference")
    score = None if check is None else _bleu([pair[1] for pair in pairs])
    made = _shortlist(bundle, manifest, texts, lexicon, first, best)
    clock.done("count", f"lists of {len(made.offsets) - 1} tokens, {len(made.ids)} ids")
    sources = [pair[0] for pair in pairs] or [golden.text for golden in manifest.golden]
    with staged_bundle(destination, force=force) as directory:
        shutil.copytree(bundle, directory, dirs_exist_ok=True)
        manifest, cost = listed(directory, manifest, made, sources, score)
        manifest.save(directory)
    clock.done("list", cost.line())
    clock.done("write", f"{destination} ({bundle_bytes(destination) / 1e6:.1f} MB)")
    return manifest


def _shortlist(
    bundle: Path, manifest: Manifest, texts: Path | None, lexicon: Path | None, first: int, best: int
) -> Shortlist:
    sizes = int(manifest.architecture["source_vocabulary_size"]), manifest.model.vocabulary_size
    if lexicon is not None and lexicon.suffix == _BINARY:
        has_start = manifest.tokenizer.decoder_start_id == sizes[1] - 1  # a student's start, which is no piece
        return read_shortlist(stored_file.read(lexicon, MOST_LIST_BYTES), *(size - has_start for size in sizes))
    if lexicon is not None:
        counts = read_lexicon(lexicon, bundle, manifest)
    else:
        assert texts is not None
        counts = count_translations(bundle, manifest, _lines(texts))
    return counts.shortlist(sizes[0], manifest.tokenizer.eos_id, first, best)


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _bleu(references: Sequence[str]) -> Score:
    """Return what gives translations their BLEU; made before the work, so that a missing sacrebleu ends it at once."""
    from sacrebleu.metrics.bleu import BLEU  # of the extra `export`; conversions do without it

    return lambda translations: BLEU().corpus_score(translations, [references]).score


def listed(
    directory: Path, manifest: Manifest, shortlist: Shortlist, texts: Sequence[str], score: Score | None = None
) -> tuple[Manifest, Cost]:
    """Add a shortlist to the files of a bundle; return its manifest, which is not saved, and what that costs.

    Golden sentences get new translations. The cost is measured on `texts`, with a `score` if there is one.
    """
    _require_listable(manifest)
    before = decode_texts(directory, manifest, texts)
    manifest = _with_shortlist(directory, manifest, shortlist)
    after = decode_texts(directory, manifest, texts)
    same = sum(map(str.__eq__, before, after)) / max(len(texts), 1)
    scores = [score(translations) if score else None for translations in (after, before)]
    cost = Cost(len(texts), round(same, 4), manifest.model.shortlist_size, *scores)
    verification = {**manifest.verification, "shortlist": dataclasses.asdict(cost)}
    return dataclasses.replace(manifest, verification=verification), cost


def _require_listable(manifest: Manifest) -> None:
    if manifest.model.has_shortlists:
        raise ValueError("it has a shortlist already; convert the checkpoint again to get rid of it")


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
