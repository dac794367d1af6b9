"""The documents' formulas in plain torch, corrected where they cannot run, with the documents' own names.

Written from the five documents alone; none of our code takes part, so that agreement means something. Masks are
(B, 1, Q, S), true where attention is allowed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

HIDDEN = -1e9


class Attention000(nn.Module):
    """Separate W_q, W_k, W_v, W_o; heads split from the width and recombined; scores divided by the root of d_head."""

    names = ("W_q", "W_k", "W_v", "W_o")

    def __init__(self, width: int, heads: int, bias: bool = True, output_bias: bool = True) -> None:
        super().__init__()
        self.heads, self.d_head = heads, width // heads
        for name in self.names:
            self.add_module(name, nn.Linear(width, width, bias=output_bias if name == self.names[-1] else bias))

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, self.d_head).transpose(1, 2)

    def scale(self) -> float:
        return math.sqrt(self.d_head)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        w_q, w_k, w_v, w_o = (self.get_submodule(name) for name in self.names)
        q, k, v = self.split(w_q(x)), self.split(w_k(memory)), self.split(w_v(memory))
        scores = torch.matmul(q, k.transpose(-2, -1)) / self.scale()
        z = torch.matmul(torch.softmax(scores.masked_fill(mask == 0, HIDDEN), dim=-1), v)
        combined: Tensor = w_o(z.transpose(1, 2).contiguous().view(*x.shape))
        return combined


class Attention002(Attention000):
    """The same with its own names, once each of the three has its own projection and length."""

    names = ("w_query", "w_key", "w_value", "w_o")


class Attention001(nn.Module):
    """One QKV layer, per token (heads, 3 x head) and chunked; an additive mask; no output projection."""

    def __init__(self, width: int, heads: int, bias: bool = True, output: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.qkv_layer = nn.Linear(width, 3 * width, bias=bias)
        self.w_o = nn.Linear(width, width) if output else None

    def chunks(self, x: Tensor) -> tuple[Tensor, ...]:
        qkv = self.qkv_layer(x)
        qkv = qkv.reshape(*x.shape[:2], self.heads, 3 * (x.shape[2] // self.heads)).permute(0, 2, 1, 3)
        return tuple(qkv.chunk(3, dim=-1))

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        q, (_, k, v) = self.chunks(x)[0], self.chunks(memory)
        scaled = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        scaled = scaled + torch.zeros(mask.shape).masked_fill(mask == 0, -math.inf)
        values = torch.matmul(torch.softmax(scaled, dim=-1), v).permute(0, 2, 1, 3).reshape(x.shape)
        return values if self.w_o is None else self.w_o(values)


class FusedAttention(Attention001):
    """One QKV layer whose output is all queries, all keys, all values, as in its usual variant."""

    def chunks(self, x: Tensor) -> tuple[Tensor, ...]:
        parts = self.qkv_layer(x).chunk(3, dim=-1)
        return tuple(part.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for part in parts)


class Attention003(nn.Module):
    """Separate matrices and biases per head, on columns; heads concatenated vertically, then W_c."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        for head in range(1, heads + 1):
            for role in "qkv":
                self.register_parameter(f"W_{role}{head}", nn.Parameter(torch.zeros(width // heads, width)))
                self.register_parameter(f"b_{role}{head}", nn.Parameter(torch.zeros(width // heads, 1)))
        self.W_c = nn.Parameter(torch.zeros(width, width))

    def affine(self, role: str, head: int, columns: Tensor) -> Tensor:
        weight, bias = self.get_parameter(f"W_{role}{head}"), self.get_parameter(f"b_{role}{head}")
        return torch.matmul(weight, columns) + bias

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        own, others = x.transpose(1, 2), memory.transpose(1, 2)  # (B, d, L): a token is a column
        outputs = []
        for head in range(1, self.heads + 1):
            q, k, v = self.affine("q", head, own), self.affine("k", head, others), self.affine("v", head, others)
            scores = torch.matmul(k.transpose(1, 2), q) / math.sqrt(k.shape[1])  # (B, S, Q)
            weights = torch.softmax(scores.masked_fill(mask[:, 0].transpose(1, 2) == 0, HIDDEN), dim=1)
            outputs.append(torch.matmul(v, weights))
        return torch.matmul(self.W_c, torch.cat(outputs, dim=1)).transpose(1, 2)


class Attention004(Attention000):
    """No biases except the last; scores divided by the root of the full width. Folding heads into the batch, as the
    document does, is the same sum."""

    names = ("to_queries", "to_keys", "to_values", "unify_heads")

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads, bias=False)

    def scale(self) -> float:
        return math.sqrt(self.heads * self.d_head)


class ScalarNorm(nn.Module):
    """aplha (x - mean) / (std + epsilon) + beta, with torch's standard deviation, which is the unbiased one."""

    def __init__(self, epsilon: float = 1e-8) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.aplha = nn.Parameter(torch.ones(1))
        self.beta = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        mean, std = x.mean(dim=-1, keepdim=True), x.std(dim=-1, keepdim=True)
        return self.aplha * (x - mean) / (std + self.epsilon) + self.beta


@dataclass(frozen=True)
class Choices:
    """The choices of one document's model or of one option. `attention` and `norm` make a module each."""

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


class FeedForward(nn.Module):
    def __init__(self, width: int, inner: int, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.linear_layer1 = nn.Linear(width, inner)
        self.linear_layer2 = nn.Linear(inner, width)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.linear_layer2(self.activation(self.linear_layer1(x)))
        return output


class Residual(nn.Module):
    def __init__(self, choices: Choices) -> None:
        super().__init__()
        self.normalize = choices.norm()
        self.pre_norm = choices.pre_norm

    def forward(self, x: Tensor, sub_layer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre_norm:
            return x + sub_layer(self.normalize(x))
        output: Tensor = self.normalize(x + sub_layer(x))
        return output


class Block(nn.Module):
    """A layer of an encoder, or of a decoder if there is memory; 004 has the same, post-norm, by other names."""

    def __init__(self, width: int, inner: int, choices: Choices, feed_forward: str, residual: str) -> None:
        super().__init__()
        self.feed_forward, self.residual = feed_forward, residual
        self.self_attention = choices.attention()
        if is_decoder := residual == DECODER_NAMES[1]:
            self.cross_attention = choices.attention()
        self.add_module(feed_forward, FeedForward(width, inner, choices.activation))
        self.add_module(residual, nn.ModuleList(Residual(choices) for _ in range(2 + is_decoder)))

    def forward(
        self, x: Tensor, mask: Tensor, memory: Tensor | None = None, source_mask: Tensor | None = None
    ) -> Tensor:
        first, *second, last = self.get_submodule(self.residual).children()
        x = first(x, lambda y: self.self_attention(y, y, mask))
        if memory is not None:
            x = second[0](x, lambda y: self.cross_attention(y, memory, source_mask))
        output: Tensor = last(x, self.get_submodule(self.feed_forward))
        return output


ENCODER_NAMES = ("feed_forward_block", "skip_connections")
DECODER_NAMES = ("feed_forward_layers", "residual_connection")


class Stack(nn.Module):
    """The layers of one side, named like the document's list, and the norm that closes them."""

    def __init__(self, list_name: str, blocks: list[nn.Module], choices: Choices) -> None:
        super().__init__()
        self.list_name = list_name
        self.normalize = choices.norm() if choices.final_norm else nn.Identity()
        self.add_module(list_name, nn.ModuleList(blocks))

    def forward(self, x: Tensor, *others: Tensor) -> Tensor:
        for block in self.get_submodule(self.list_name).children():
            x = block(x, *others)
        output: Tensor = self.normalize(x)
        return output


def position_table(num_positions: int, width: int, choices: Choices) -> Tensor:
    """Compute (1, P, d): sin(pos / base^(i / d)), cos(pos / base^((i - 1) / d))."""
    component = torch.arange(width, dtype=torch.float64)
    odd = (component - 1) / width if choices.has_brackets else component - 1 / width
    omega = choices.base ** torch.where(component % 2 == 0, component / width, odd)
    angles = torch.arange(num_positions)[:, None] / omega
    return torch.where(component % 2 == 0, angles.sin(), angles.cos())[None]


class PositionalEncoding(nn.Module):
    positional_embeddings: Tensor

    def __init__(self, num_positions: int, width: int, choices: Choices) -> None:
        super().__init__()
        table = position_table(num_positions, width, choices)
        self.register_buffer("positional_embeddings", table, persistent=choices.has_tables)


@dataclass(frozen=True)
class Sizes:
    """Sizes of the models that the tests build; names as in the importer's configuration."""

    source_vocabulary_size: int
    target_vocabulary_size: int
    d_model: int = 16
    d_ff: int = 24
    decoder_d_ff: int | None = None
    num_heads: int = 2
    num_encoder_layers: int = 2
    num_decoder_layers: int = 2
    max_source_positions: int = 64
    max_target_positions: int = 48


class Transformer002(nn.Module):
    """The whole encoder-decoder: scaled embeddings plus positions, stacks, projection.

    It returns logits instead of their logarithmic softmax.
    """

    def __init__(self, sizes: Sizes, choices: Choices) -> None:
        super().__init__()
        width, inner = sizes.d_model, (sizes.d_ff, sizes.decoder_d_ff or sizes.d_ff)
        encoder: list[nn.Module] = [
            Block(width, inner[0], choices, *ENCODER_NAMES) for _ in range(sizes.num_encoder_layers)
        ]
        decoder: list[nn.Module] = [
            Block(width, inner[1], choices, *DECODER_NAMES) for _ in range(sizes.num_decoder_layers)
        ]
        self.encoder = Stack("encoder_list", encoder, choices)
        self.decoder = Stack("decoder_list", decoder, choices)
        self.source_embedding = nn.ModuleDict({"embeddings": nn.Embedding(sizes.source_vocabulary_size, width)})
        self.target_embedding = nn.ModuleDict({"embeddings": nn.Embedding(sizes.target_vocabulary_size, width)})
        self.source_positional_encoding = PositionalEncoding(sizes.max_source_positions, width, choices)
        self.target_positional_encoding = PositionalEncoding(sizes.max_target_positions, width, choices)
        self.projection_layer = nn.ModuleDict()
        self.projection_layer["linear_layer"] = nn.Linear(
            width, sizes.target_vocabulary_size, bias=choices.projection_bias
        )
        if choices.is_tied:
            self.projection_layer["linear_layer"].weight = self.target_embedding["embeddings"].weight
        self.factor = math.sqrt(width) if choices.scale_embeddings else 1.0

    def embed(self, embedding: nn.ModuleDict, positions: PositionalEncoding, ids: Tensor) -> Tensor:
        embedded: Tensor = embedding["embeddings"](ids) * self.factor
        return embedded + positions.positional_embeddings[:, : ids.shape[1], :].to(embedded.dtype)

    @torch.no_grad()
    def forward(self, source: Tensor, target: Tensor, source_lengths: Tensor | None = None) -> Tensor:
        """Compute (B, S), (B, T) -> logits (B, T, V)."""
        lengths = torch.tensor([source.shape[1]] * len(source)) if source_lengths is None else source_lengths
        source_mask = (torch.arange(source.shape[1]) < lengths[:, None])[:, None, None, :]
        target_mask = torch.tril(torch.ones(target.shape[1], target.shape[1]))[None, None]
        memory = self.encoder(self.embed(self.source_embedding, self.source_positional_encoding, source), source_mask)
        x = self.embed(self.target_embedding, self.target_positional_encoding, target)
        logits: Tensor = self.projection_layer["linear_layer"](self.decoder(x, target_mask, memory, source_mask))
        return logits

    def greedy(self, source: list[int], start_id: int, eos_id: int, never: list[int], limit: int) -> tuple[int, ...]:
        """Append the most probable allowed token repeatedly; the end-of-sentence id is included unless cut off."""
        output: list[int] = []
        while len(output) < limit and eos_id not in output[-1:]:
            logits = self(torch.tensor([source]), torch.tensor([[start_id, *output]]))[0, -1]
            logits[never] = -math.inf
            output.append(int(logits.argmax()))
        return tuple(output)
