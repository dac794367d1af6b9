"""The documents' formulas in plain torch, corrected where they cannot run, with the documents' own names.

Written from the five documents in `docs/notebooks.md` alone; none of our code takes part, so that agreement means
something. Masks are (B, 1, Q, S), true where attention is allowed.
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


class Attention004(nn.Module):
    """No biases except the last; heads folded into the batch; scores divided by the root of the full width."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_keys = nn.Linear(width, width, bias=False)
        self.to_queries = nn.Linear(width, width, bias=False)
        self.to_values = nn.Linear(width, width, bias=False)
        self.unify_heads = nn.Linear(width, width)

    def fold(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        return heads.contiguous().view(batch * self.heads, length, width // self.heads)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        keys, queries, values = (
            self.fold(layer(y)) for layer, y in ((self.to_keys, memory), (self.to_queries, x), (self.to_values, memory))
        )
        dot = torch.bmm(queries, keys.transpose(1, 2)) / (width**0.5)
        dot = dot.masked_fill(mask.expand(batch, self.heads, length, -1).flatten(0, 1) == 0, HIDDEN)
        out = torch.bmm(torch.softmax(dot, dim=2), values).view(batch, self.heads, length, width // self.heads)
        unified: Tensor = self.unify_heads(out.transpose(1, 2).contiguous().view(batch, length, width))
        return unified


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
    is_numbered: bool = False  # the block of 004
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


class EncoderBlock(nn.Module):
    def __init__(self, width: int, inner: int, choices: Choices) -> None:
        super().__init__()
        self.self_attention = choices.attention()
        self.feed_forward_block = FeedForward(width, inner, choices.activation)
        self.skip_connections = nn.ModuleList(Residual(choices) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.skip_connections[0](x, lambda y: self.self_attention(y, y, mask))
        output: Tensor = self.skip_connections[1](x, self.feed_forward_block)
        return output


class DecoderBlock(nn.Module):
    def __init__(self, width: int, inner: int, choices: Choices) -> None:
        super().__init__()
        self.self_attention = choices.attention()
        self.cross_attention = choices.attention()
        self.feed_forward_layers = FeedForward(width, inner, choices.activation)
        self.residual_connection = nn.ModuleList(Residual(choices) for _ in range(3))

    def forward(self, x: Tensor, memory: Tensor, source_mask: Tensor, target_mask: Tensor) -> Tensor:
        x = self.residual_connection[0](x, lambda y: self.self_attention(y, y, target_mask))
        x = self.residual_connection[1](x, lambda y: self.cross_attention(y, memory, source_mask))
        output: Tensor = self.residual_connection[2](x, self.feed_forward_layers)
        return output


class NumberedEncoderBlock(nn.Module):
    """attention, norm_1, ff, norm_2; each norm is applied to the sum with the sublayer's input."""

    def __init__(self, width: int, inner: int, choices: Choices) -> None:
        super().__init__()
        self.attention = choices.attention()
        self.norm_1, self.norm_2 = choices.norm(), choices.norm()
        self.ff = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.norm_1(self.attention(x, x, mask) + x)
        output: Tensor = self.norm_2(self.ff(x) + x)
        return output


class NumberedDecoderBlock(nn.Module):
    """The same with cross-attention in between."""

    def __init__(self, width: int, inner: int, choices: Choices) -> None:
        super().__init__()
        self.attention, self.cross_attention = choices.attention(), choices.attention()
        self.norm_1, self.norm_2, self.norm_3 = choices.norm(), choices.norm(), choices.norm()
        self.ff = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))

    def forward(self, x: Tensor, memory: Tensor, source_mask: Tensor, target_mask: Tensor) -> Tensor:
        x = self.norm_1(self.attention(x, x, target_mask) + x)
        x = self.norm_2(self.cross_attention(x, memory, source_mask) + x)
        output: Tensor = self.norm_3(self.ff(x) + x)
        return output


class Stack(nn.Module):
    """The layers of one side, named like the document's list, and the norm that closes them."""

    def __init__(self, list_name: str, blocks: list[nn.Module], choices: Choices) -> None:
        super().__init__()
        self.list_name = list_name
        if choices.final_norm:
            self.normalize: nn.Module | None = choices.norm()
        else:
            self.normalize = None
        self.add_module(list_name, nn.ModuleList(blocks))

    def forward(self, x: Tensor, *others: Tensor) -> Tensor:
        for block in self.get_submodule(self.list_name).children():
            x = block(x, *others)
        return x if self.normalize is None else self.normalize(x)


def position_table(num_positions: int, width: int, choices: Choices) -> Tensor:
    """Compute (1, P, d), number by number: sin(pos / base^(i / d)), cos(pos / base^((i - 1) / d))."""
    table = torch.zeros(num_positions, width, dtype=torch.float64)
    for component in range(width):
        if component % 2 == 0:
            exponent = component / width
        else:
            exponent = (component - 1) / width if choices.has_brackets else component - 1 / width
        omega = choices.base**exponent
        for position in range(num_positions):
            angle = position / omega
            table[position, component] = math.cos(angle) if component % 2 else math.sin(angle)
    return table.unsqueeze(0)


class Embeddings(nn.Module):
    def __init__(self, vocabulary_size: int, width: int) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(vocabulary_size, width)


class PositionalEncoding(nn.Module):
    positional_embeddings: Tensor

    def __init__(self, num_positions: int, width: int, choices: Choices) -> None:
        super().__init__()
        table = position_table(num_positions, width, choices)
        self.register_buffer("positional_embeddings", table, persistent=choices.has_tables)


class Projection(nn.Module):
    def __init__(self, width: int, vocabulary_size: int, bias: bool) -> None:
        super().__init__()
        self.linear_layer = nn.Linear(width, vocabulary_size, bias=bias)


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
        encoder_block = NumberedEncoderBlock if choices.is_numbered else EncoderBlock
        decoder_block = NumberedDecoderBlock if choices.is_numbered else DecoderBlock
        encoder: list[nn.Module] = [encoder_block(width, inner[0], choices) for _ in range(sizes.num_encoder_layers)]
        decoder: list[nn.Module] = [decoder_block(width, inner[1], choices) for _ in range(sizes.num_decoder_layers)]
        self.encoder = Stack("encoder_list", encoder, choices)
        self.decoder = Stack("decoder_list", decoder, choices)
        self.source_embedding = Embeddings(sizes.source_vocabulary_size, width)
        self.target_embedding = Embeddings(sizes.target_vocabulary_size, width)
        self.source_positional_encoding = PositionalEncoding(sizes.max_source_positions, width, choices)
        self.target_positional_encoding = PositionalEncoding(sizes.max_target_positions, width, choices)
        self.projection_layer = Projection(width, sizes.target_vocabulary_size, choices.projection_bias)
        if choices.is_tied:
            self.projection_layer.linear_layer.weight = self.target_embedding.embeddings.weight
        self.factor = math.sqrt(width) if choices.scale_embeddings else 1.0

    def embed(self, embedding: Embeddings, positions: PositionalEncoding, ids: Tensor) -> Tensor:
        embedded: Tensor = embedding.embeddings(ids) * self.factor
        return embedded + positions.positional_embeddings[:, : ids.shape[1], :].to(embedded.dtype)

    @torch.no_grad()
    def forward(self, source: Tensor, target: Tensor, source_lengths: Tensor | None = None) -> Tensor:
        """Compute (B, S), (B, T) -> logits (B, T, V)."""
        lengths = torch.tensor([source.shape[1]] * len(source)) if source_lengths is None else source_lengths
        source_mask = (torch.arange(source.shape[1]) < lengths[:, None])[:, None, None, :]
        target_mask = torch.tril(torch.ones(target.shape[1], target.shape[1]))[None, None]
        memory = self.encoder(self.embed(self.source_embedding, self.source_positional_encoding, source), source_mask)
        x = self.embed(self.target_embedding, self.target_positional_encoding, target)
        logits: Tensor = self.projection_layer.linear_layer(self.decoder(x, memory, source_mask, target_mask))
        return logits

    def greedy(self, source: list[int], start_id: int, eos_id: int, never: list[int], limit: int) -> tuple[int, ...]:
        """Append the most probable allowed token repeatedly; the end-of-sentence id is included unless cut off."""
        output: list[int] = []
        while len(output) < limit and eos_id not in output[-1:]:
            logits = self(torch.tensor([source]), torch.tensor([[start_id, *output]]))[0, -1]
            logits[never] = -math.inf
            output.append(int(logits.argmax()))
        return tuple(output)
