"""A minimal manifest, for tests that never open what it describes."""

from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import GoldenPair, LanguagePair, Limits, ModelShape, TokenizerSpec

MANIFEST = Manifest(
    name="bare",
    model=ModelShape(1, 1, 1, 1),
    tokenizer=TokenizerSpec("sentencepiece", "tokenizer", pad_id=0, eos_id=2, unk_id=1, decoder_start_id=0),
    languages=(LanguagePair("en", "de"),),
    limits=Limits(1, 1),
    golden=(GoldenPair("en", "de", "", (), (), ""),),
    checksums=dict.fromkeys(("encoder.onnx", "decoder_step.onnx", "tokenizer"), "0"),
    checkpoint_sha256="0",
)
