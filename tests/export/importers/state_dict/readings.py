"""The documents' formulas in plain torch, corrected where they cannot run, with the documents' own names.

Written from the five documents alone; none of our code takes part, so that agreement means something. Masks are
(B, 1, Q, S), true where attention is allowed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

SOURCE_SIZE, WIDTH, LONGEST = 130, 16, (64, 48)  # of the source's vocabulary, the model, and its sources and targets
HIDDEN = -1e9


class Attention(nn.Module):
    """Separate projections by the names of 000, 002 or 004; scores divided by the root of a head or (004) the width.

    Folding heads into the batch, as 004 does, is the same sum.
    """

    def __init__(self, names: str, heads: int = 2, bias: bool = True, output_bias: bool = True, by_width: bool = False):
        super().__init__()
        self.names, self.heads = names.split(), heads
        self.scale = math.sqrt(WIDTH if by_width else WIDTH // heads)
        for name in self.names:
            self.add_module(name, nn.Linear(WIDTH, WIDTH, bias=output_bias if name == self.names[-1] else bias))

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Any:
        w_q, w_k, w_v, w_o = (self.get_submodule(name) for name in self.names)
        q, k, v = (each.unflatten(2, (self.heads, -1)).transpose(1, 2) for each in (w_q(x), w_k(memory), w_v(memory)))
        scores = torch.matmul(q, k.transpose(-2, -1)) / self.scale
        z = torch.matmul(torch.softmax(scores.masked_fill(mask == 0, HIDDEN), dim=-1), v)
        return w_o(z.transpose(1, 2).contiguous().view(*x.shape))


class JointAttention(nn.Module):
    """One QKV layer: per token (heads, 3 x head) and chunked, as in 001, or all queries, all keys, all values.

    The mask is added; 001 has no output projection.
    """

    def __init__(self, packed: bool, heads: int = 2, bias: bool = True, output: bool = False) -> None:
        super().__init__()
        self.packed, self.heads = packed, heads
        self.qkv_layer = nn.Linear(WIDTH, 3 * WIDTH, bias=bias)
        self.w_o = nn.Linear(WIDTH, WIDTH) if output else nn.Identity()

    def chunks(self, x: Tensor) -> tuple[Tensor, ...]:
        qkv = self.qkv_layer(x)
        if self.packed:
            return tuple(qkv.unflatten(2, (self.heads, -1)).transpose(1, 2).chunk(3, dim=-1))
        return tuple(part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in qkv.chunk(3, dim=-1))

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Any:
        q, (_, k, v) = self.chunks(x)[0], self.chunks(memory)
        scaled = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        scaled = scaled + torch.zeros(mask.shape).masked_fill(mask == 0, -math.inf)
        return self.w_o(torch.matmul(torch.softmax(scaled, dim=-1), v).transpose(1, 2).reshape(x.shape))


class Attention003(nn.Module):
    """Separate matrices and biases per head, on columns; heads concatenated vertically, then W_c."""

    def __init__(self, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        for name in (f"{role}{head}" for head in range(1, heads + 1) for role in "qkv"):
            self.register_parameter(f"W_{name}", nn.Parameter(torch.zeros(WIDTH // heads, WIDTH)))
            self.register_parameter(f"b_{name}", nn.Parameter(torch.zeros(WIDTH // heads, 1)))
        self.W_c = nn.Parameter(torch.zeros(WIDTH, WIDTH))

    def affine(self, name: str, columns: Tensor) -> Tensor:
        return torch.matmul(self.get_parameter(f"W_{name}"), columns) + self.get_parameter(f"b_{name}")

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Any:
        own, others = x.transpose(1, 2), memory.transpose(1, 2)  # (B, d, L): a token is a column
        outputs = []
        for head in range(1, self.heads + 1):
            q, k, v = self.affine(f"q{head}", own), self.affine(f"k{head}", others), self.affine(f"v{head}", others)
            scores = torch.matmul(k.transpose(1, 2), q) / math.sqrt(k.shape[1])  # (B, S, Q)
            weights = torch.softmax(scores.masked_fill(mask[:, 0].transpose(1, 2) == 0, HIDDEN), dim=1)
            outputs.append(torch.matmul(v, weights))
        return torch.matmul(self.W_c, torch.cat(outputs, dim=1)).transpose(1, 2)


class ScalarNorm(nn.Module):
    """aplha (x - mean) / (std + epsilon) + beta, with torch's standard deviation, which is the unbiased one."""

    def __init__(self, epsilon: float = 1e-8, width: int = 1) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.aplha, self.beta = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Any:
        mean, std = x.mean(dim=-1, keepdim=True), x.std(dim=-1, keepdim=True)
        return self.aplha * (x - mean) / (std + self.epsilon) + self.beta


@dataclass(frozen=True)
class Choices:
    """The choices of one document's model or of one option; pairs are of the encoder and the decoder."""

    attention: Callable[[], nn.Module]
    norm: Callable[[], nn.Module] = ScalarNorm
    activation: Callable[[Tensor], Tensor] = torch.relu
    pre_norm: bool = False
    final_norm: bool = True
    scale_embeddings: bool = True
    base: float = 1000.0
    has_brackets: bool = True
    projection_bias: bool = True
    is_tied: bool = False
    has_tables: bool = True
    num_layers: tuple[int, int] = (2, 2)
    inner: tuple[int, int] = (24, 24)
    target_size: int = 100


class Block(nn.Module):
    """A layer of an encoder, or of a decoder if there is memory; 004 has the same, post-norm, by other names."""

    def __init__(self, inner: int, choices: Choices, feed_forward: str, residual: str) -> None:
        super().__init__()
        self.choices, self.feed_forward, self.residual = choices, feed_forward, residual
        self.self_attention = choices.attention()
        if is_decoder := residual == "residual_connection":
            self.cross_attention = choices.attention()
        layers = {"linear_layer1": nn.Linear(WIDTH, inner), "linear_layer2": nn.Linear(inner, WIDTH)}
        self.add_module(feed_forward, nn.ModuleDict(layers))
        norms = (nn.ModuleDict({"normalize": choices.norm()}) for _ in range(2 + is_decoder))
        self.add_module(residual, nn.ModuleList(norms))

    def feed(self, x: Tensor) -> Any:
        first, second = self.get_submodule(self.feed_forward).children()
        return second(self.choices.activation(first(x)))

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor | None = None, source_mask: Tensor | None = None) -> Any:
        parts = [lambda y: self.self_attention(y, y, mask), self.feed]
        if memory is not None:
            parts.insert(1, lambda y: self.cross_attention(y, memory, source_mask))
        for part, connection in zip(parts, self.get_submodule(self.residual).children(), strict=True):
            (normalize,) = connection.children()
            x = x + part(normalize(x)) if self.choices.pre_norm else normalize(x + part(x))
        return x


def position_table(num_positions: int, choices: Choices) -> Tensor:
    """Compute (1, P, d): sin(pos / base^(i / d)), cos(pos / base^((i - 1) / d))."""
    component = torch.arange(WIDTH, dtype=torch.float64)
    odd = (component - 1) / WIDTH if choices.has_brackets else component - 1 / WIDTH
    omega = choices.base ** torch.where(component % 2 == 0, component / WIDTH, odd)
    angles = torch.arange(num_positions)[:, None] / omega
    return torch.where(component % 2 == 0, angles.sin(), angles.cos())[None]


class Side(nn.Module):
    """The layers of one side, named like the document's list, and the norm that closes them."""

    def __init__(self, side: int, choices: Choices, *names: str) -> None:
        super().__init__()
        self.normalize = choices.norm() if choices.final_norm else nn.Identity()
        self.name = f"{('encoder', 'decoder')[side]}_list"
        blocks = (Block(choices.inner[side], choices, *names) for _ in range(choices.num_layers[side]))
        self.add_module(self.name, nn.ModuleList(blocks))

    def forward(self, x: Tensor, *others: Tensor) -> Any:
        for block in self.get_submodule(self.name).children():
            x = block(x, *others)
        return self.normalize(x)


class Transformer002(nn.Module):
    """The whole encoder-decoder: scaled embeddings plus positions, stacks, projection.

    It returns logits instead of their logarithmic softmax.
    """

    def __init__(self, choices: Choices) -> None:
        super().__init__()
        self.encoder = Side(0, choices, "feed_forward_block", "skip_connections")
        self.decoder = Side(1, choices, "feed_forward_layers", "residual_connection")
        sides = zip(("source", "target"), (SOURCE_SIZE, choices.target_size), LONGEST, strict=True)
        for name, size, longest in sides:
            self.add_module(f"{name}_embedding", nn.ModuleDict({"embeddings": nn.Embedding(size, WIDTH)}))
            positions = nn.Module()
            table = position_table(longest, choices)
            positions.register_buffer("positional_embeddings", table, persistent=choices.has_tables)
            self.add_module(f"{name}_positional_encoding", positions)
        projection = nn.Linear(WIDTH, choices.target_size, bias=choices.projection_bias)
        if choices.is_tied:
            projection.weight = self.get_parameter("target_embedding.embeddings.weight")
        self.projection_layer = nn.ModuleDict({"linear_layer": projection})
        self.factor = math.sqrt(WIDTH) if choices.scale_embeddings else 1.0

    def embed(self, side: str, ids: Tensor) -> Tensor:
        embedded: Tensor = self.get_submodule(f"{side}_embedding.embeddings")(ids) * self.factor
        positions = self.get_buffer(f"{side}_positional_encoding.positional_embeddings")
        return embedded + positions[:, : ids.shape[1], :].to(embedded.dtype)

    @torch.no_grad()
    def forward(self, source: Tensor, target: Tensor, source_lengths: Tensor | None = None) -> Any:
        """Compute (B, S), (B, T) -> logits (B, T, V)."""
        lengths = torch.tensor([source.shape[1]] * len(source)) if source_lengths is None else source_lengths
        source_mask = (torch.arange(source.shape[1]) < lengths[:, None])[:, None, None, :]
        target_mask = torch.tril(torch.ones(target.shape[1], target.shape[1]))[None, None]
        memory = self.encoder(self.embed("source", source), source_mask)
        x = self.decoder(self.embed("target", target), target_mask, memory, source_mask)
        return self.projection_layer["linear_layer"](x)

    def greedy(self, source: list[int], start_id: int, eos_id: int, never: list[int], limit: int) -> tuple[int, ...]:
        """Append the most probable allowed token repeatedly; the end-of-sentence id is included unless cut off."""
        output: list[int] = []
        while len(output) < limit and eos_id not in output[-1:]:
            logits = self(torch.tensor([source]), torch.tensor([[start_id, *output]]))[0, -1]
            logits[never] = -math.inf
            output.append(int(logits.argmax()))
        return tuple(output)
