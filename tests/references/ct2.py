"""Our weights as a CTranslate2 model: another engine that shares no code with ours."""

from pathlib import Path
from typing import Any

from ctranslate2.converters.transformers import M2M100Loader

from benchmarks.peers.token_names import token_name
from export.architecture.transformer import Transformer
from tests.references.m2m100 import to_m2m100


def write_ct2(model: Transformer, directory: Path) -> None:
    """Write the model, float32, through its M2M100 form; no token is added to sources.

    Raises:
        ValueError: the model uses an option that M2M100 does not support.
    """
    config = model.config
    spec: Any = M2M100Loader().get_model_spec(to_m2m100(model))
    vocabulary = [token_name(token_id) for token_id in range(config.target_vocabulary_size)]
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.bos_token = token_name(0)
    spec.config.eos_token = token_name(config.eos_id)
    spec.config.unk_token = token_name(config.unk_id)
    spec.config.decoder_start_token = token_name(config.decoder_start_id)
    spec.config.add_source_eos = False
    spec.validate()
    spec.optimize(quantization=None)
    directory.mkdir(parents=True, exist_ok=True)
    spec.save(str(directory))
