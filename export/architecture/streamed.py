"""The model one layer at a time: its teacher-forced pass with no more than a layer's weights in memory as float32.

In float, or as it is in 8 bits: with weights and inputs of dense layers rounded as int8 rounds them, keys and values as
the caches do, and otherwise in float. What the kernels compute is compared with that.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from export.architecture.attention import MultiHeadAttention
from export.architecture.config import ModelConfig
from export.architecture.decoder import DecoderLayer
from export.architecture.embedding import sinusoidal_table
from export.architecture.encoder import EncoderLayer
from export.architecture.layers import final_norm, layer_norm
from export.architecture.relative_bias import relative_biases
from export.architecture.transformer import ENCODER_TABLE, padding_mask, projection_table, target_table
from export.stages import progress

_ROWS_AT_ONCE = 16_384  # of the projection
LARGEST = 127  # level of 8 bits with a sign; -128 is unused: the range is symmetric
Layer = TypeVar("Layer", bound=nn.Module)


class StreamedTransformer:
    """Computes what `Transformer.forward` does for many sequences, from weights in any floating dtype.

    They are read when they are needed, each once per pass, so that they may be mapped from a file.
    """

    def __init__(self, config: ModelConfig, weights: Mapping[str, Tensor], *, rounds: bool = False) -> None:
        """Read `weights` as `Transformer.weights` names them; with `rounds`, be what int8 is."""
        self._config, self._weights, self._rounds = config, weights, rounds

    @torch.no_grad()
    def hidden(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        attention: list[Tensor] | None = None,
    ) -> Tensor:
        """Return what the projection reads, (B, T, d), and append each layer's attention to the sources (B, H, T, S) to
        `attention`.

        `targets` begin with the start token.
        """
        config = self._config
        source_ids, target_ids = (_padded(ids, config.pad_id) for ids in (sources, targets))
        lengths = torch.tensor([len(ids) for ids in sources])
        mask = padding_mask(lengths, source_ids.shape[1])
        memory = self._embedded("encoder", ENCODER_TABLE, source_ids)
        biases = self._biases("encoder", config.num_encoder_layers, source_ids.shape[1])
        for index in progress(range(config.num_encoder_layers), "encoder"):
            layer = self._loaded(EncoderLayer(config), f"encoder.layers.{index}")
            memory = layer(memory, mask, biases[index % len(biases)])
        memory = self._loaded(final_norm(config), "encoder.final_norm")(memory)
        x = self._embedded("decoder", target_table(config), target_ids)
        biases = self._biases("decoder", config.num_decoder_layers, target_ids.shape[1])
        for index in progress(range(config.num_decoder_layers), "decoder"):
            decoder_layer = self._loaded(DecoderLayer(config), f"decoder.layers.{index}")
            if attention is not None:
                decoder_layer.cross_attention.register_forward_hook(_keeps_probabilities(attention, mask))
            x = decoder_layer(x, memory, mask, biases[index % len(biases)])
        normed: Tensor = self._loaded(final_norm(config), "decoder.final_norm")(x)
        return normed

    @torch.no_grad()
    def logits(self, hidden: Tensor) -> Iterator[Tensor]:
        """Yield the logits of (n, d), some of the vocabulary at a time: (n, up to 16,384) each."""
        config = self._config
        table = self._weights[projection_table(config)]
        bias = self._weights["projection.bias"].float() if config.projection_bias else None
        hidden = _rounded_inputs(hidden) if self._rounds else hidden
        for begin in range(0, len(table), _ROWS_AT_ONCE):
            rows = slice(begin, begin + _ROWS_AT_ONCE)
            logits = hidden @ self._own(table[rows]).T
            yield logits if bias is None else logits + bias[rows]

    def _embedded(self, side: str, table: str, ids: Tensor) -> Tensor:
        config = self._config
        scale = config.d_model**0.5 if config.scale_embeddings else 1.0
        x = self._own(self._weights[table][ids].flatten(0, 1)).view(*ids.shape, -1) * scale
        if config.positions.layout == "learned":
            x = x + self._weights[f"{side}.embedding.position_table.weight"][: ids.shape[1]].float()
        elif config.positions.is_sinusoidal:
            x = x + sinusoidal_table(ids.shape[1], config.d_model, config.positions)
        if config.embedding_norm:
            normed: Tensor = self._loaded(layer_norm(config), f"{side}.embedding.norm")(x)
            return normed
        return x

    def _biases(self, side: str, num_layers: int, num_tokens: int) -> list[Tensor | None]:
        """Return what the layers' scores gain by distance: for all layers, or for each."""
        modules = relative_biases(self._config, num_layers, is_causal=side == "decoder")
        loaded = (self._loaded(each, f"{side}.relative_biases.{index}") for index, each in enumerate(modules))
        return [each(num_tokens) for each in loaded] or [None]

    def _own(self, weight: Tensor) -> Tensor:
        """Return the rows of a weight as this model has them."""
        return rounded_rows(weight.float(), LARGEST) if self._rounds else weight.float()

    def _loaded(self, layer: Layer, prefix: str) -> Layer:
        """Return a layer, in evaluation mode, with its weights."""
        state = {name: self._weights[f"{prefix}.{name}"].float() for name in layer.state_dict()}
        layer.load_state_dict(state, assign=True)
        if self._rounds:
            for name, module in layer.named_modules():
                if isinstance(module, nn.Linear):
                    module.weight = nn.Parameter(self._own(module.weight), requires_grad=False)
                    is_positive = (
                        name.endswith("feed_forward.outer")
                        and self._config.activation == "relu"
                        and not self._config.gated
                    )
                    levels = 2 * LARGEST + 1 if is_positive else LARGEST
                    module.register_forward_pre_hook(lambda _, given, levels=levels: _rounded_inputs(given[0], levels))
                if name.endswith(("attention.key", "attention.value")):
                    module.register_forward_hook(lambda _module, _given, stored: stored.bfloat16().float())
        return layer.eval()


def _rounded_inputs(x: Tensor, levels: int = LARGEST) -> Tensor:
    return rounded_rows(x.flatten(0, -2), levels).view(x.shape)


def rounded_rows(rows: Tensor, levels: int) -> Tensor:
    """Round (n, d) to multiples of each row's largest magnitude over `levels`."""
    steps = rows.abs().amax(dim=-1, keepdim=True).clamp(min=1e-30) / levels
    return (rows / steps).round() * steps


def _keeps_probabilities(attention: list[Tensor], mask: Tensor) -> Callable[..., None]:
    """Return a hook that appends a module's probabilities, which are not formed in it."""

    def keep(module: MultiHeadAttention, given: tuple[Tensor, ...], _result: Tensor) -> None:
        queries, keys = module.split_heads(module.query(given[0])), module.split_heads(module.key(given[1]))
        scores = queries @ keys.transpose(-1, -2) * module.scale
        attention.append(scores.masked_fill(~mask, -torch.inf).softmax(-1))

    return keep


def _padded(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*ids, *[pad_id] * (width - len(ids))] for ids in rows])
