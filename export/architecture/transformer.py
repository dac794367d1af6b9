"""The whole model: encoder, decoder and the projection onto the target vocabulary."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from export.architecture.config import ModelConfig
from export.architecture.decoder import Decoder
from export.architecture.encoder import Encoder

ENCODER_TABLE = "encoder.embedding.tokens.weight"
DECODER_TABLE = "decoder.embedding.tokens.weight"
PROJECTION = "projection.weight"
_MAX_LISTED = 40


def target_table(config: ModelConfig) -> str:
    """Return the name under which `Transformer.weights` has the target side's embedding."""
    return ENCODER_TABLE if config.share_embeddings else DECODER_TABLE


def projection_table(config: ModelConfig) -> str:
    """Return the name under which `Transformer.weights` has the projection's weight."""
    return target_table(config) if config.tie_projection else PROJECTION


class Transformer(nn.Module):
    """Encoder-decoder Transformer; `forward` is the teacher-forced pass that training and verification use."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.projection = nn.Linear(config.d_model, config.target_vocabulary_size, bias=config.projection_bias)
        self._initialize()
        if config.share_embeddings:
            self.decoder.embedding.tokens.weight = self.encoder.embedding.tokens.weight
        if config.tie_projection:
            self.projection.weight = self.decoder.embedding.tokens.weight

    def forward(self, source_ids: Tensor, target_ids: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Return logits of the token after each target position: (B, S), (B, T) int64 -> (B, T, V)."""
        hidden = self.decoder(target_ids, self.encoder(source_ids, source_mask), source_mask)
        logits: Tensor = self.projection(hidden)
        return logits

    def shared_names(self) -> dict[str, str]:
        """Return the parameters that share another one's storage: name -> its name in checkpoints."""
        shared = {}
        if self.config.share_embeddings:
            shared[DECODER_TABLE] = ENCODER_TABLE
        if self.config.tie_projection:
            shared[PROJECTION] = projection_table(self.config)
        return shared

    def weights(self) -> dict[str, Tensor]:
        """Return the state that a checkpoint stores: every parameter once."""
        shared = self.shared_names()
        return {name: value for name, value in self.state_dict().items() if name not in shared}

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Load weights as returned by `weights()`, in any floating dtype.

        Raises:
            ValueError: as for `check_fit`.
        """
        self.check_fit(weights)
        expected = self.weights()
        with torch.no_grad():
            for name, value in weights.items():
                expected[name].copy_(value)

    def check_fit(self, weights: Mapping[str, Tensor]) -> None:
        """Compare names and shapes with the model's own.

        Raises:
            ValueError: names are missing or unexpected, or shapes differ; if very many, the first are listed.
        """
        expected = self.weights()
        problems = [f"{name} is missing" for name in sorted(expected.keys() - weights.keys())]
        problems += [f"{name} is unexpected" for name in sorted(weights.keys() - expected.keys())]
        for name in sorted(expected.keys() & weights.keys()):
            if expected[name].shape != weights[name].shape:
                given, wanted = tuple(weights[name].shape), tuple(expected[name].shape)
                problems.append(f"{name} has shape {given}, the configuration asks for {wanted}")
        if problems:
            listed = problems[:_MAX_LISTED]
            if len(problems) > _MAX_LISTED:
                listed.append(f"and {len(problems) - _MAX_LISTED} more")
            raise ValueError("The weights do not fit the model: " + "; ".join(listed) + ".")

    def _initialize(self) -> None:
        """Initialize matrices by Xavier, embeddings by N(0, d^-1/2), so that scaled ones have unit variance."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.config.d_model**-0.5)
                if module.padding_idx is not None:
                    with torch.no_grad():
                        module.weight[module.padding_idx].zero_()


def padding_mask(lengths: Tensor, width: int) -> Tensor:
    """Map (B,) lengths to (B, 1, 1, width) boolean, true for live tokens."""
    return (torch.arange(width, device=lengths.device) < lengths[:, None])[:, None, None, :]
