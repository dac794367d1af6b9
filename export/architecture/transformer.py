"""The whole model: encoder, decoder and the projection onto the target vocabulary."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from export.architecture.config import ModelConfig
from export.architecture.decoder import Decoder
from export.architecture.encoder import Encoder
from export.architecture.names import DECODER_TABLE, ENCODER_TABLE, PROJECTION, projection_table
from export.architecture.stored import StoredModel, as_array, as_tensor, misfits


class Transformer(nn.Module):
    """Encoder-decoder Transformer; `forward` is the teacher-forced pass that training and verification use."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.projection = nn.Linear(
            config.of("decoder").d_model, config.target_vocabulary_size, bias=config.projection_bias
        )
        self._initialize()
        if config.share_embeddings:
            self.decoder.embedding.tokens.weight = self.encoder.embedding.tokens.weight
        if config.tie_projection:
            self.projection.weight = self.decoder.embedding.tokens.weight

    @classmethod
    def of(cls, stored: StoredModel) -> "Transformer":
        """Return a stored model as float32, for inference; it shares the memory of weights in float32."""
        with torch.device("meta"):  # no memory or time spent on numbers that are replaced immediately
            model = cls(stored.config)
        model.adopt({name: as_tensor(value).float() for name, value in stored.weights.items()})
        return model.requires_grad_(False).eval()

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

    def stored(self) -> StoredModel:
        return StoredModel(self.config, {name: as_array(value) for name, value in self.weights().items()})

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Load weights as returned by `weights()`, in any floating dtype."""
        if problem := misfits(self.config, weights):
            raise ValueError(problem)
        expected = self.weights()
        with torch.no_grad():
            for name, value in weights.items():
                expected[name].copy_(value)

    def adopt(self, weights: Mapping[str, Tensor]) -> None:
        """Take weights that fit as they are, without a copy, in place of the own ones, which may be on no device."""
        shared = self.shared_names()
        self.load_state_dict({**weights, **{name: weights[kept] for name, kept in shared.items()}}, assign=True)
        for name, kept in shared.items():
            module, _, attribute = name.rpartition(".")
            setattr(self.get_submodule(module), attribute, self.get_parameter(kept))
        for embedding in (self.encoder.embedding, self.decoder.embedding):
            embedding.compute_positions()

    def _initialize(self) -> None:
        """Initialize matrices by Xavier, embeddings by N(0, d^-1/2), so that scaled ones have unit variance."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
                if module.padding_idx is not None:
                    with torch.no_grad():
                        module.weight[module.padding_idx].zero_()


def padding_mask(lengths: Tensor, width: int) -> Tensor:
    """Map (B,) lengths to (B, 1, 1, width) boolean, true for live tokens."""
    return (torch.arange(width, device=lengths.device) < lengths[:, None])[:, None, None, :]
