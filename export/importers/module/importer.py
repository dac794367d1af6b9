"""Reads a state dict as the module that its author's code makes of it, and compares what both compute."""

import torch
from torch import Tensor, nn

from export.architecture.stored import StoredModel
from export.architecture.transformer import Transformer
from export.importers.module.author import Author
from export.importers.module.probing import BATCH, NUM_SOURCE, NUM_TARGET
from export.importers.module.reading import SpecialIds, read
from export.importers.module.structure import NotReadError
from export.importers.module.trace import Trace
from export.importers.state_dict.finish import Companions

# Rows, and the lengths of sources and targets that both are compared on: the longest show windows of attention.
_COMPARED = ((3, 1, 1), (3, 5, 17), (3, 30, 25), (1, 512, 512))
_TOLERANCE = 1e-3  # of the logarithm of a probability
_NUM_POSITIONS = 512  # unless --config asks for more


@torch.no_grad()
def read_module(author: Author, companions: Companions) -> StoredModel:
    """Return the model that a module computes; raise `ValueError` with what it has that ours have not."""
    settings, source, target = companions.settings, companions.source, companions.target
    assert settings is not None
    assert source is not None
    assert target is not None
    said = settings.of_model()
    ids = SpecialIds(*(said[name] for name in SpecialIds._fields))
    special = {*ids, *settings.source_prefix_ids, settings.source_eos_id, settings.source_pad_id}
    # Masks may depend on the others.
    usual = [torch.tensor([index for index in range(each.size) if index not in special]) for each in (source, target)]
    random = torch.Generator().manual_seed(0)

    def rows(num_rows: int, lengths: tuple[int, int]) -> list[Tensor]:
        return [
            each[torch.randint(len(each), (num_rows, length), generator=random)]
            for each, length in zip(usual, lengths, strict=True)
        ]

    most = [said.get(f"max_{side}_positions", _NUM_POSITIONS) for side in ("source", "target")]
    layers = {type(each).__name__ for each in author.module.modules() if isinstance(each, nn.RNNBase)}
    if layers:
        raise NotReadError(f"the model has recurrent layers ({', '.join(layers)}), so it is not a Transformer")
    trace = Trace.of(author.logits, *rows(BATCH, (NUM_SOURCE, NUM_TARGET)))
    _check_logits(trace)
    model = read(trace, ids, most)
    own = Transformer.of(model)
    limits = model.config.max_source_positions, model.config.max_target_positions
    for num_rows, *lengths in _COMPARED:
        given = rows(num_rows, (min(lengths[0], limits[0]), min(lengths[1], limits[1])))
        try:
            expected = author.logits(*given)
        except NotReadError as error:
            hint = "or set max_source_positions and max_target_positions in config.json"
            raise NotReadError(f"{error}, {hint}") from error
        expected, found = (logits.log_softmax(-1) for logits in (expected, own(*given)))
        difference = float((expected - found).abs().max())
        if not difference <= _TOLERANCE:
            shown = f"for sources of {given[0].shape[1]} tokens and targets of {given[1].shape[1]}"
            raise NotReadError(f"logits of the model as it was read differ by up to {difference:.2g} {shown}")
    return model


def _check_logits(trace: Trace) -> None:
    """Raise an error for what people return or read instead."""
    logits, targets = trace.values[trace.logits], trace.values[trace.targets].clone()
    if torch.allclose(logits.sum(-1), torch.ones(())):
        raise NotReadError("the model returns probabilities; expected logits, or the logarithms of probabilities")
    targets[:, -1] = targets[:, -2]
    if trace.targets in trace.dependent[trace.logits] and torch.equal(
        trace.run({trace.targets: targets}, trace.logits)[:, -1], logits[:, -1]
    ):
        raise NotReadError(
            "the last logits don't depend on the last target token, so the model shifts targets itself; give it one "
            "token more, and leave out the first logits"
        )
