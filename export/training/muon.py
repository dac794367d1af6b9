"""The Muon optimizer for hidden matrices: orthogonalised momentum (Jordan et al., 2024).

torch.optim.Muon iterates one matrix at a time and in bfloat16, four times slower on CPUs without bfloat16 units; here,
matrices of the same shape are iterated together, in their own precision.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

# Coefficients of the quintic iteration: steep at zero, so that five rounds bring singular values near one.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ROUNDS = 5


def orthogonalize(matrices: Tensor) -> Tensor:
    """Bring the singular values of (N, rows, columns) matrices near one by Newton-Schulz iterations."""
    x: Tensor = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.transpose(1, 2)
    for _ in range(_ROUNDS):
        gram = x @ x.transpose(1, 2)
        x = _A * x + torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C) @ x
    return x.transpose(1, 2) if tall else x


class Muon(torch.optim.Optimizer):
    """Nesterov momentum whose update is orthogonalised and scaled to the size of an AdamW step (RMS 0.2)."""

    def __init__(self, matrices: Iterable[nn.Parameter], lr: float, momentum: float, weight_decay: float) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = {}
            for parameter in group["params"]:
                by_shape.setdefault(parameter.shape, []).append(parameter)
            for shape, parameters in by_shape.items():
                updates = orthogonalize(torch.stack([self._momentum(p, group["momentum"]) for p in parameters]))
                rate = group["lr"] * 0.2 * max(shape) ** 0.5
                for parameter, update in zip(parameters, updates, strict=True):
                    parameter.mul_(1.0 - group["lr"] * group["weight_decay"]).add_(update, alpha=-rate)

    def _momentum(self, parameter: nn.Parameter, momentum: float) -> Tensor:
        gradient = parameter.grad
        if gradient is None:
            raise RuntimeError("Muon: a matrix has no gradient; every hidden matrix must take part in the loss.")
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        buffer: Tensor = state["momentum"].lerp_(gradient, 1.0 - momentum)
        return gradient.lerp(buffer, momentum)
