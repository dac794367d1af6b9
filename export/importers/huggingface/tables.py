"""The stored tables that encoder, decoder and projection read in transformers' models.

A file may hold some of the four names: transformers keeps each table that is present and ties the missing ones to one
of those (`PreTrainedModel.tie_weights`, `_tied_weights_keys` of the families).
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from export.architecture import ModelConfig
from export.architecture.names import DECODER_TABLE, ENCODER_TABLE, PROJECTION
from export.architecture.stored import Array

_SHARED, _SOURCE = "shared.weight", "encoder.embed_tokens.weight"
_TARGET, _HEAD = "decoder.embed_tokens.weight", "lm_head.weight"
# In the order in which transformers substitutes them for others: in BART's layout, and in T5's.
TABLE_NAMES = (_SHARED, _HEAD, _TARGET, _SOURCE)
T5_TABLE_NAMES = (_SHARED, _SOURCE, _TARGET, _HEAD)


def place_tables(
    stored: Mapping[str, Array],
    config: ModelConfig,
    problems: list[str],
    order: tuple[str, ...] = TABLE_NAMES,
) -> tuple[ModelConfig, dict[str, Array]]:
    """Return `stored` under our names, and `config` with equal tables tied, source and target only if config.json does.

    Tables that differ are each read by their own owner, as in transformers, regardless of config.json.
    """
    read = {}
    for ours, theirs in ((ENCODER_TABLE, _SOURCE), (DECODER_TABLE, _TARGET), (PROJECTION, _HEAD)):
        names = _in_order(theirs, config, order)
        found = next((name for name in names if name in stored), None)
        if found is None:
            others = ", ".join(names[1:])
            why = f"so are {others}, any of which would do" if others else "config.json ties it to none"
            problems.append(f"{theirs} is missing, and {why}")
        else:
            read[ours] = stored[found]
    if len(read) < 3:
        return config, read
    is_shared = config.share_embeddings and _same(read[ENCODER_TABLE], read[DECODER_TABLE])
    is_tied = _same(read[DECODER_TABLE], read[PROJECTION])
    if is_tied:
        del read[PROJECTION]
    if is_shared:
        del read[DECODER_TABLE]
    return dataclasses.replace(config, share_embeddings=is_shared, tie_projection=is_tied), read


def _in_order(name: str, config: ModelConfig, order: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names from which a reader of `name` takes its table: the first one that is present."""
    if not config.tie_projection:
        tied: tuple[str, ...] = ()  # transformers then ties nothing, not even source and target
    elif config.share_embeddings:
        tied = order
    else:
        tied = () if name == _SOURCE else (_HEAD, _TARGET)
    return tuple(dict.fromkeys((name, *tied)))


def _same(one: Array, other: Array) -> bool:
    return one is other or (one.dtype == other.dtype and np.array_equal(one, other))
