"""The simpler simple recurrent unit (Kim et al. 2019, section 3), which some decoders have for self-attention."""

import torch
from torch import Tensor, nn

from export.architecture.config import ModelConfig


class Recurrence(nn.Module):
    """SSRU(x)_t = relu(c_t), c_t = g_t c_(t-1) + (1 - g_t) W x_t, g_t = sigmoid(W_g x_t + b_g), c_0 = 0.

    The state c is all that a step needs of the tokens before it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.candidate = nn.Linear(config.d_model, config.d_model, bias=False)
        self.gate = nn.Linear(config.d_model, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, d) to (B, T, d)."""
        return self.run(self.gate(x), self.candidate(x), x.shape[1])

    def run(self, gates: Tensor, candidates: Tensor, most_tokens: int) -> Tensor:
        """Return the outputs of up to `most_tokens` tokens from gates and candidates, each (B, T, d).

        All states at once (Hillis and Steele 1986): a span of tokens multiplies the state before it and adds to it; two
        neighbouring spans combine, so spans double until they begin with the first token.
        """
        # What is before the first token, and before itself: a state of zero, which is multiplied by zero.
        nothing = torch.full_like(gates[:, :1], 0.0)
        factors = torch.cat([nothing, torch.sigmoid(gates)], dim=1)  # (B, 1 + T, d)
        states = torch.cat([nothing, (1.0 - factors[:, 1:]) * candidates], dim=1)
        places, span = torch.arange(factors.shape[1]), 1
        while span < most_tokens:
            earlier = (places - span).clamp(min=0)
            states = states + factors * states.index_select(1, earlier)
            factors = factors * factors.index_select(1, earlier)
            span *= 2
        output: Tensor = states[:, 1:].relu()
        return output

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Map a token (B, d) and the state before it (B, d) to the output and the state after it."""
        factor = torch.sigmoid(self.gate(x))
        state = factor * state + (1.0 - factor) * self.candidate(x)
        return state.relu(), state
