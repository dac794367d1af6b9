"""The whole model: compared with torch's layers, which inputs may influence which outputs, and strict loading."""

import math
import re

import pytest
import torch
from torch import nn

from export.architecture import ModelConfig, PositionConfig
from export.architecture.attention import MultiHeadAttention
from export.architecture.decoder import DecoderLayer
from export.architecture.encoder import EncoderLayer
from export.architecture.transformer import Transformer, padding_mask
from tests.export.tiny_models import random_sources, tiny_config, tiny_model

POST = {"norm": "post", "final_norm": False}


@torch.no_grad()
def copy_attention(attention: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Copy our weights to torch's."""
    parts = (attention.query, attention.key, attention.value)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(attention.output.state_dict())


def copy_layer(ours: nn.Module, theirs: nn.Module, attentions: dict[str, str], norms: dict[str, str]) -> None:
    for name, target in attentions.items():
        attention = theirs.get_submodule(target)
        own = ours.get_submodule(name)
        assert isinstance(attention, nn.MultiheadAttention)
        assert isinstance(own, MultiHeadAttention)
        copy_attention(own, attention)
    modules = {"feed_forward.inner": "linear1", "feed_forward.outer": "linear2", **norms}
    for name, target in modules.items():
        theirs.get_submodule(target).load_state_dict(ours.get_submodule(name).state_dict())


def randomize(module: nn.Module) -> None:
    torch.manual_seed(5)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)


@pytest.mark.parametrize("changes", [{}, POST])
@torch.no_grad()
def test_encoder_layer_equals_torchs(changes: dict[str, object]) -> None:
    config = tiny_config(**changes)
    ours = EncoderLayer(config).eval()
    randomize(ours)
    theirs = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=config.norm == "pre").eval()
    norms = {"self_attention_residual.norm": "norm1", "feed_forward_residual.norm": "norm2"}
    copy_layer(ours, theirs, {"self_attention": "self_attn"}, norms)
    x, lengths = torch.randn(3, 6, 32), torch.tensor([6, 2, 4])
    live = torch.arange(6) < lengths[:, None]
    expected = theirs(x, src_key_padding_mask=~live)
    given = ours(x, padding_mask(lengths, 6))
    torch.testing.assert_close(given[live], expected[live], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("changes", [{}, POST])
@torch.no_grad()
def test_decoder_layer_equals_torchs(changes: dict[str, object]) -> None:
    config = tiny_config(**changes)
    ours = DecoderLayer(config).eval()
    randomize(ours)
    theirs = nn.TransformerDecoderLayer(32, 4, 64, batch_first=True, norm_first=config.norm == "pre").eval()
    norms = {
        "self_attention_residual.norm": "norm1",
        "cross_attention_residual.norm": "norm2",
        "feed_forward_residual.norm": "norm3",
    }
    copy_layer(ours, theirs, {"self_attention": "self_attn", "cross_attention": "multihead_attn"}, norms)
    x, memory, lengths = torch.randn(2, 5, 32), torch.randn(2, 7, 32), torch.tensor([7, 3])
    live = torch.arange(7) < lengths[:, None]
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    expected = theirs(x, memory, tgt_mask=mask, memory_key_padding_mask=~live, tgt_is_causal=True)
    given = ours(x, memory, padding_mask(lengths, 7))
    torch.testing.assert_close(given, expected, rtol=1e-4, atol=1e-4)


@pytest.fixture(params=[{}, POST, {"tie_projection": False, "projection_bias": True, "share_embeddings": False}])
def model(request: pytest.FixtureRequest) -> Transformer:
    return tiny_model(tiny_config(**request.param))


@torch.no_grad()
def test_later_tokens_do_not_change_earlier_logits(model: Transformer) -> None:
    source = torch.tensor(random_sources(120, [9]))
    target = torch.tensor(random_sources(120, [12], seed=4))
    changed = target.clone()
    changed[0, 7:] = (changed[0, 7:] + 11) % 100 + 4
    before, after = model(source, target), model(source, changed)
    torch.testing.assert_close(before[:, :7], after[:, :7], rtol=0, atol=1e-4)
    assert (before[:, 7:] - after[:, 7:]).abs().max() > 0.1


@torch.no_grad()
def test_padding_changes_nothing(model: Transformer) -> None:
    sources = random_sources(120, [3, 9, 14])
    target = torch.tensor(random_sources(120, [8], seed=4))
    padded = torch.tensor([[*source, *[1] * (14 - len(source))] for source in sources])
    together = model(padded, target.expand(3, -1), padding_mask(torch.tensor([3, 9, 14]), 14))
    for row, source in enumerate(sources):
        torch.testing.assert_close(together[row], model(torch.tensor([source]), target)[0], rtol=1e-4, atol=1e-3)
    unmasked = model(padded, target.expand(3, -1))
    assert (unmasked[0] - together[0]).abs().max() > 0.1


@pytest.mark.parametrize("attention_output", ["none", "biased", "unbiased"])
def test_models_by_hand_learn(attention_output: str) -> None:
    """Every parameter has a finite gradient, including the single gain and bias of a norm."""
    config = tiny_config(**POST, layer_norm="scalar", attention_bias=False, attention_output=attention_output)
    model = Transformer(config).train()
    source, target = (torch.tensor(random_sources(120, [9, 9], seed=seed)) for seed in (1, 2))
    nn.functional.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name
        assert float(parameter.grad.abs().max()) > 0.0, name
    outputs = {name.rsplit(".", 1)[1] for name, _ in model.named_parameters() if "attention.output" in name}
    assert outputs == {"none": set(), "biased": {"weight", "bias"}, "unbiased": {"weight"}}[attention_output]


def test_tied_weights_are_one_tensor_and_kept_once() -> None:
    tied = Transformer(tiny_config())
    assert tied.projection.weight is tied.encoder.embedding.tokens.weight
    names = [name for name in tied.weights() if "tokens" in name or "projection" in name]
    assert names == ["encoder.embedding.tokens.weight"]
    free = Transformer(tiny_config(tie_projection=False, share_embeddings=False))
    tables = [module.weight for module in free.modules() if isinstance(module, nn.Embedding)]
    assert len({id(table) for table in (free.projection.weight, *tables)}) == 3


def test_weights_load_back_in_any_precision() -> None:
    model = tiny_model(tiny_config())
    other = Transformer(model.config)
    other.load_weights({name: value.half() for name, value in model.weights().items()})
    for name, value in model.weights().items():
        torch.testing.assert_close(other.weights()[name], value.half().float())


def test_misfits_are_all_listed() -> None:
    model = Transformer(tiny_config())
    weights = model.weights()
    del weights["encoder.layers.0.self_attention.query.bias"]
    weights["extra"] = torch.zeros(1)
    weights["decoder.final_norm.weight"] = torch.zeros(5)
    with pytest.raises(
        ValueError, match=r"query\.bias is missing; extra is unexpected; decoder\.final_norm\.weight has"
    ):
        model.load_weights(weights)


def test_of_very_many_misfits_the_first_are_listed() -> None:
    model = Transformer(tiny_config(num_encoder_layers=9))
    with pytest.raises(ValueError, match=r"; and \d+ more\.$") as raised:
        model.load_weights({})
    assert str(raised.value).count("is missing") == 40


@pytest.mark.parametrize("name", ["d_model", "num_encoder_layers", "max_source_positions"])
def test_hostile_sizes_are_refused(name: str) -> None:
    """Rejected early: positions are computed and layers made before anything can be compared with the weights."""
    for size in (10**9, 10**400):
        with pytest.raises(ValueError, match=rf"{name} is 10+, allowed: a number from 1 to"):
            tiny_config(**{name: size})


def test_configuration_reports_all_problems() -> None:
    with pytest.raises(ValueError, match=r"not a multiple of num_heads.*share_embeddings.*pad_id 200 is outside"):
        tiny_config(num_heads=5, target_vocabulary_size=100, pad_id=200)
    problems = (
        "d_ff is True, allowed: a number from 1 to 10000000",
        "decoder_d_ff is 0, allowed: a number from 1 to 10000000",
        "norm is 'rms', allowed: pre, post, sandwich",
        "final_norm is 1, allowed: true, false",
        "layer_norm_epsilon is -1, allowed: a number from 0 to 1e+09",
        "score_scale is 'x', allowed: head, model, none",
        "positions.layout is 'x', allowed: interleaved, halves, learned, rotary, none",
        "positions.base is nan, allowed: a number from 0 to 1e+09",
    )
    with pytest.raises(ValueError, match=re.escape("; ".join(problems))):
        tiny_config(
            d_ff=True,
            decoder_d_ff=0,
            norm="rms",
            final_norm=1,
            layer_norm_epsilon=-1,
            score_scale="x",
            positions=PositionConfig(layout="x", base=math.nan),  # type: ignore[arg-type]
        )
    with pytest.raises(ValueError, match=r"positions.base is 0.*unbracketed needs positions.layout interleaved"):
        tiny_config(positions=PositionConfig(layout="halves", base=0.0, cosine_exponent="unbracketed"))
    with pytest.raises(ValueError, match=r"usable: in the decoder, d_model 32 is not a multiple of num_heads 5\.$"):
        tiny_config(decoder_num_heads=5)
    with pytest.raises(ValueError, match="share_embeddings needs a decoder_d_model of 32, not 40"):
        tiny_config(decoder_d_model=40)
    assert tiny_config(source_vocabulary_size=60, share_embeddings=False, eos_id=100).eos_id == 100  # the target's
    with pytest.raises(ValueError, match=r"unknown keys \['rotary'\] and lacks \['target_vocabulary_size'\]"):
        ModelConfig.from_document({"source_vocabulary_size": 10, "rotary": True})
    config = tiny_config()
    assert ModelConfig.from_document(config.to_document()) == config


def test_stacks_may_have_feed_forward_layers_of_their_own_width() -> None:
    """A file that knows only one width means both."""
    for said, widths in (({}, (64, 64)), ({"decoder_d_ff": None}, (64, 64)), ({"decoder_d_ff": 21}, (64, 21))):
        document = {name: value for name, value in tiny_config().to_document().items() if name != "decoder_d_ff"}
        model = Transformer(ModelConfig.from_document(document | said))
        names = (f"{stack}.layers.1.feed_forward.inner.bias" for stack in ("encoder", "decoder"))
        assert tuple(len(model.weights()[name]) for name in names) == widths
        assert ModelConfig.from_document(model.config.to_document()) == model.config
