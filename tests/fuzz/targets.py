"""All readers of foreign bytes, by name. A target raises only if the code has a bug."""

from pathlib import Path

from tests.fuzz import checkpoint_targets, file_targets, planted, text_targets, tokenizer_targets, wire_targets
from tests.fuzz.bounded import Target
from tests.fuzz.models import TOKENIZERS

CORPUS = Path(__file__).with_name("corpus")

TARGETS: dict[str, Target] = {
    "markup": text_targets.markup,
    "sentences": text_targets.sentences,
    "long-segments": text_targets.long_segments,
    "placeholders": text_targets.placeholders,
    "terms": text_targets.terms,
    "protection": text_targets.protection,
    "words": text_targets.words_of,
    "detection": text_targets.detection,
    "languages": text_targets.languages,
    "documents": text_targets.documents,
    **{f"{name}-encoding": tokenizer_targets.encoding(name) for name in TOKENIZERS},
    **{f"{name}-decoding": tokenizer_targets.decoding(name) for name in TOKENIZERS},
    "manifest": file_targets.manifest,
    "bundle-files": file_targets.bundle_files,
    "graph-file": file_targets.graph_file,
    "vocabulary": file_targets.vocabulary,
    "sentencepiece-file": file_targets.sentencepiece_file,
    "tokenizer-json-file": file_targets.tokenizer_json_file,
    "configuration": file_targets.configuration,
    "environment": file_targets.environment,
    "api-keys": file_targets.api_keys,
    "glossary": file_targets.glossary,
    "certificate": file_targets.certificate,
    **{f"{kind}-checkpoint": checkpoint_targets.checkpoint(kind) for kind in checkpoint_targets.CHECKPOINTS},
    "marian-yaml": checkpoint_targets.marian_yaml,
    "numpy-archive": checkpoint_targets.numpy_archive,
    "kserve-tensors": wire_targets.kserve_tensors,
    "requests": wire_targets.requests,
    "metadata": wire_targets.metadata,
    "http": wire_targets.http,
    "same-site": wire_targets.same_site,
    "names": wire_targets.names,
}
PLANTED: dict[str, Target] = {"planted": planted.planted, "planted-slow": planted.planted_slow}
