"""Encoder-decoders as people write them, with random weights. None of our code takes part: agreement means something.

All map (B, S) and (B, T) int64 to (B, T, V), and have their own names, axes and masks.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

SOURCE_SIZE, TARGET_SIZE, WIDTH, NUM_HEADS, D_HEAD, INNER, LONGEST = 50, 47, 16, 4, 4, 24, 60
PAD = 0
Change = Callable[[Tensor], Tensor]


class ScalarNorm(nn.Module):
    """One gain and bias, the unbiased deviation, and epsilon beside it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.alpha, self.bias = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Any:
        return self.alpha * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + self.bias


class RootNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.g = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Any:
        return self.g * x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def attend(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None, change: Change | None = None) -> Tensor:
    """Attention of (..., T, d) queries to (..., S, d) keys that are not `hidden` (T, S), with changed scores."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores if change is None else change(scores)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -1e9)
    return scores.softmax(-1) @ v


class PerHead(nn.Module):
    """One Linear per head and role."""

    def __init__(self) -> None:
        super().__init__()
        self.roles = nn.ModuleList(
            nn.ModuleList(nn.Linear(WIDTH, D_HEAD) for _ in range(NUM_HEADS)) for _ in ("query", "key", "value")
        )
        self.join = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, memory: Tensor, hidden: Tensor | None) -> Any:
        heads = zip(*(role for role in self.roles if isinstance(role, nn.ModuleList)), strict=True)
        return self.join(torch.cat([attend(q(x), k(memory), v(memory), hidden) for q, k, v in heads], -1))


class Grouped(nn.Module):
    """Two heads of queries for each of keys and values, without biases; scores may be changed, queries rotated."""

    def __init__(
        self,
        num_shared: int = NUM_HEADS // 2,
        change: Change | None = None,
        is_rotary: bool = False,
        size: int = D_HEAD,
    ) -> None:
        super().__init__()
        self.q_proj, self.o_proj = nn.Linear(WIDTH, NUM_HEADS * size, False), nn.Linear(NUM_HEADS * size, WIDTH, False)
        self.k_proj, self.v_proj = (nn.Linear(WIDTH, num_shared * size, bias=False) for _ in range(2))
        self.change, self.is_rotary, self.size = change, is_rotary, size

    def forward(self, x: Tensor, memory: Tensor, hidden: Tensor | None) -> Any:
        q, k, v = (
            layer(given).unflatten(-1, (-1, self.size)).transpose(1, 2)
            for layer, given in ((self.q_proj, x), (self.k_proj, memory), (self.v_proj, memory))
        )
        if self.is_rotary and x is memory:
            q, k = rotated(q), rotated(k)
        k, v = (each.repeat_interleave(NUM_HEADS // each.shape[1], 1) for each in (k, v))
        return self.o_proj(attend(q, k, v, hidden, self.change).transpose(1, 2).flatten(2))


def rotated(x: Tensor) -> Tensor:
    """Turn the first four components of (..., T, d); there may be no others."""
    angles = torch.arange(x.shape[-2])[:, None] * torch.tensor([1.0, 0.01])
    first, second, rest = x.split([2, 2, x.shape[-1] - 4], -1)
    turned = first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()
    return torch.cat([*turned, rest], -1)


class TokensFirst(nn.Module):
    """Scores (T, S, B, H), as labml.ai's annotated implementations have them, and a norm with an unbiased variance."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor, hidden: Tensor | None) -> Any:
        q, k, v = (
            layer(given).transpose(0, 1).unflatten(-1, (NUM_HEADS, D_HEAD))
            for layer, given in ((self.query, x), (self.key, memory), (self.value, memory))
        )
        scores = torch.einsum("ibhd,jbhd->ijbh", q, k) / math.sqrt(D_HEAD)
        if hidden is not None:
            scores = scores.masked_fill(hidden[..., None, None], -torch.inf)
        return self.output(torch.einsum("ijbh,jbhd->bihd", scores.softmax(1), v).flatten(2))


class Experts(nn.Module):
    """A mixture of experts: all of them, by their probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.experts = nn.Linear(WIDTH, 2), nn.ModuleList(Plain() for _ in range(2))

    def forward(self, x: Tensor) -> Any:
        shares = self.router(x).softmax(-1).split(1, -1)
        return sum(share * expert(x) for share, expert in zip(shares, self.experts, strict=True))


class Packed(nn.Module):
    """Queries, keys and values from one Linear, folded into heads, by torch's own attention."""

    def __init__(self) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, memory: Tensor, hidden: Tensor | None) -> Any:
        (q, _, _), (_, k, v) = self.c_attn(x).chunk(3, -1), self.c_attn(memory).chunk(3, -1)
        q, k, v = (each.unflatten(-1, (NUM_HEADS, D_HEAD)).transpose(1, 2) for each in (q, k, v))
        mask = None if hidden is None else ~hidden
        return self.c_proj(functional.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2))


class Plain(nn.Module):
    def __init__(self, activation: Callable[[Tensor], Tensor] = torch.relu) -> None:
        super().__init__()
        self.fc1, self.fc2, self.activation = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH), activation

    def forward(self, x: Tensor) -> Any:
        return self.fc2(self.activation(self.fc1(x)))


class SwiGlu(nn.Module):
    """The gate and what it multiplies from one Linear."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * INNER, bias=False), nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Any:
        gate, value = self.up(x).chunk(2, -1)
        return self.down(functional.silu(gate) * value)


@dataclass(frozen=True)
class Options:
    """What a model of `Handwritten` is made of; the later ones are for models that are none of ours."""

    attention: Callable[[], nn.Module] = PerHead
    feed_forward: Callable[[], nn.Module] = Plain
    norm: Callable[[int], nn.Module] = nn.LayerNorm
    is_pre: bool = True
    alpha: float | None = None  # of streams, as DeepNorm has it
    is_learned: bool | None = False  # positions: a parameter, or sinusoids times a learned factor, or none
    narrow: int = 0  # embeddings of this width, and a Linear behind
    is_tied: bool = False
    has_log_softmax: bool = False
    has_residuals: bool = True
    is_parallel: bool = False  # attention and feed-forward read the same
    hides_in_encoder: bool = False
    shows_later: bool = False  # to the decoder
    drops: bool = False  # even in evaluation


class Layer(nn.Module):
    def __init__(self, options: Options, crosses: bool) -> None:
        super().__init__()
        self.options = options
        self.parts = nn.ModuleList(options.attention() for _ in range(1 + crosses)).append(options.feed_forward())
        self.norms = nn.ModuleList(options.norm(WIDTH) for _ in self.parts)
        self.gammas = nn.ParameterList(torch.ones(WIDTH) for _ in self.parts)

    def forward(self, x: Tensor, memory: Tensor | None, hidden: Tensor | None) -> Any:
        *attentions, feed_forward = self.parts
        norms, is_pre = iter(self.norms), self.options.is_pre
        if self.options.is_parallel:
            normed = next(norms)(x)
            return x + attentions[0](normed, normed, hidden) + feed_forward(normed)
        for part, norm, gamma in zip(self.parts, norms, self.gammas, strict=True):
            given = norm(x) if is_pre else x
            inputs = (given, hidden) if part is attentions[0] else (memory, None)
            branch = gamma * (part(given) if part is feed_forward else part(given, *inputs))
            stream = x if self.options.alpha is None else self.options.alpha * x
            total = stream + branch if self.options.has_residuals else branch
            x = total if is_pre else norm(total)
        return x


class Handwritten(nn.Module):
    def __init__(self, options: Options) -> None:
        super().__init__()
        self.options, narrow = options, options.narrow or WIDTH
        sizes = (SOURCE_SIZE, TARGET_SIZE)
        self.tables = nn.ModuleList(nn.Embedding(size, narrow) for size in sizes)
        self.widen = nn.ModuleList(nn.Linear(narrow, WIDTH) if options.narrow else nn.Identity() for _ in sizes)
        self.positions = nn.ParameterList(torch.zeros(1, LONGEST, WIDTH) for _ in sizes if options.is_learned)
        self.factor = nn.Parameter(torch.ones(1))
        self.enc, self.dec = (nn.ModuleList(Layer(options, crosses) for _ in range(2)) for crosses in (False, True))
        self.ends = nn.ModuleList(options.norm(WIDTH) if options.is_pre else nn.Identity() for _ in sizes)
        self.out = nn.Linear(WIDTH, TARGET_SIZE, bias=not options.is_tied)
        if options.is_tied:
            self.out.weight = self.tables[1].get_parameter("weight")

    def embed(self, ids: Tensor, side: int) -> Any:
        x = self.widen[side](self.tables[side](ids))
        x = functional.dropout(x, 0.1, training=self.options.drops)
        if self.options.is_learned:
            return x + self.positions[side][:, : ids.shape[1]]
        if self.options.is_learned is None:
            return x
        return x * math.sqrt(WIDTH) + self.factor * sinusoids(ids.shape[1])

    def forward(self, source: Tensor, target: Tensor) -> Any:
        later = torch.ones(2, LONGEST, LONGEST, dtype=torch.bool).triu(1)[0]
        memory, x = self.embed(source, 0), self.embed(target, 1)
        hidden = later[: source.shape[1], : source.shape[1]] if self.options.hides_in_encoder else None
        for layer in self.enc:
            memory = layer(memory, None, hidden)
        memory = self.ends[0](memory)
        for layer in self.dec:
            x = layer(x, memory, None if self.options.shows_later else later[: target.shape[1], : target.shape[1]])
        logits = self.out(self.ends[1](x))
        return logits.log_softmax(-1) if self.options.has_log_softmax else logits


def sinusoids(length: int) -> Tensor:
    """Sine and cosine in turns, by the paper's section 3.5."""
    angles = torch.arange(length)[:, None] / 10000.0 ** (torch.arange(0, WIDTH, 2) / WIDTH)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


class Pytorch(nn.Module):
    """torch's own model, sequence first, with all masks given, as its tutorial of translation has it."""

    def __init__(
        self,
        norm_first: bool,
        sequence_first: bool = True,
        activation: str = "relu",
        sizes: tuple[int, int] = (SOURCE_SIZE, TARGET_SIZE),
    ) -> None:
        super().__init__()
        self.transformer = nn.Transformer(
            WIDTH, NUM_HEADS, 2, 2, INNER, norm_first=norm_first, batch_first=not sequence_first, activation=activation
        )
        self.generator = nn.Linear(WIDTH, sizes[1])
        self.src_tok_emb, self.tgt_tok_emb = (nn.Embedding(size, WIDTH) for size in sizes)
        self.positional_encoding = nn.Module()
        table = sinusoids(LONGEST)[:, None] if sequence_first else sinusoids(LONGEST)
        self.positional_encoding.register_buffer("pos_embedding", table)
        self.sequence_first = sequence_first

    def forward(self, source: Tensor, target: Tensor) -> Any:
        source_padding, target_padding = source == PAD, target == PAD
        length = target.shape[1]
        if self.sequence_first:
            source, target = source.T, target.T
        x, y = (
            table(ids) * math.sqrt(WIDTH)
            + self.get_buffer("positional_encoding.pos_embedding")[: ids.shape[0 if self.sequence_first else 1]]
            for table, ids in ((self.src_tok_emb, source), (self.tgt_tok_emb, target))
        )
        later = self.transformer.generate_square_subsequent_mask(length)
        found = self.transformer(x, y, None, later, None, source_padding, target_padding, source_padding)
        logits = self.generator(found)
        return logits.transpose(0, 1) if self.sequence_first else logits


@torch.no_grad()
def randomized(module: nn.Module) -> nn.Module:
    """Set all weights so that logits depend on every token."""
    random = torch.Generator().manual_seed(0)
    for name, parameter in module.named_parameters():
        noise = torch.randn(parameter.shape, generator=random)
        if parameter.dim() == 1:
            parameter.copy_(0.1 * noise + (0.0 if name.endswith("bias") and "norms" not in name else parameter))
        else:
            is_table = "tables" in name or "emb" in name or "positions" in name
            parameter.copy_(noise if is_table else 1.5 * noise * parameter.shape[-1] ** -0.5)
    return module.eval()


MODELS: dict[str, Callable[[], nn.Module]] = {
    "torch post": partial(Pytorch, False),
    "torch pre": partial(Pytorch, True, activation="gelu"),
    "torch batch first": partial(Pytorch, False, sequence_first=False),
    "a Linear per head": partial(Handwritten, Options(narrow=8, is_pre=False)),
    "packed": partial(Handwritten, Options(Packed, SwiGlu, is_learned=True, is_tied=True, has_log_softmax=True)),
    "grouped": partial(Handwritten, Options(Grouped, partial(Plain, functional.silu), RootNorm)),
    "rotary": partial(Handwritten, Options(partial(Grouped, 1, is_rotary=True), is_learned=None)),
    "half rotary": partial(Handwritten, Options(partial(Grouped, 1, is_rotary=True, size=8), is_learned=None)),
    "alpha": partial(Handwritten, Options(TokensFirst, is_pre=False, alpha=1.5)),
    "scalar norms": partial(Handwritten, Options(Packed, partial(Plain, functional.gelu), ScalarNorm)),
}
