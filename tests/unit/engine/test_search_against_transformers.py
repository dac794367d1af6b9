"""The engine's searches and transformers' `generate`, on one and the same toy model."""

import random
import warnings
from typing import Any

import pytest

from service.domain.translation import FinishReason
from service.engine.sequence import Sequence
from tests.unit.engine.fake_runner import EOS_ID, START_ID, FakeRunner
from tests.unit.engine.recorder import new_sequence
from tests.unit.engine.test_engine_decoding import decode

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")

PAD_ID = 50  # outside the model's vocabulary


def generate(runner: FakeRunner, sequence: Sequence) -> list[tuple[tuple[int, ...], float]]:
    """Return the output of `generate` for a sequence: token ids after the prefix, the end included, and scores."""
    options = sequence.options
    model = _toy_model(runner)
    prefix, given = sequence.target_prefix_ids, sequence.output_prefix_ids
    assert not (prefix and given), "decoder_input_ids don't count in scores, a forced prefix does"

    def force_prefix(input_ids: Any, scores: Any) -> Any:
        """Force the prefix, as `forced_bos_token_id` forces the first token, for any number of tokens."""
        if input_ids.shape[1] > len(prefix):
            return scores
        forced = torch.full_like(scores, -torch.inf)
        forced[:, prefix[input_ids.shape[1] - 1]] = 0
        return forced

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = model.generate(
            torch.tensor([sequence.source_ids]),
            decoder_input_ids=torch.tensor([[START_ID, *given]]),
            logits_processor=[force_prefix],
            num_beams=options.beam_size,
            num_return_sequences=options.num_hypotheses,
            length_penalty=options.length_penalty,
            max_new_tokens=len(prefix) + options.max_output_tokens - len(given) + options.forces_end,
            early_stopping=options.stops_early,
            forced_eos_token_id=EOS_ID if options.forces_end else None,
            do_sample=False,
            use_cache=False,
            return_dict_in_generate=True,
            output_scores=True,
        )
    hypotheses = []
    scores = result.sequences_scores.tolist()
    for ids, score in zip(result.sequences[:, 1 + len(prefix) :].tolist(), scores, strict=True):
        length = ids.index(EOS_ID) + 1 if EOS_ID in ids else ids.index(PAD_ID) if PAD_ID in ids else len(ids)
        hypotheses.append((tuple(ids[: min(length, options.max_output_tokens)]), score))  # without a forced end
    return hypotheses


def _toy_model(runner: FakeRunner) -> Any:
    outputs = transformers.modeling_outputs

    class Encoder(torch.nn.Module):  # type: ignore[misc]
        main_input_name = "input_ids"

        def forward(self, input_ids: Any, **_: Any) -> Any:
            return outputs.BaseModelOutput(last_hidden_state=input_ids[:, :, None].float())

    class Toy(transformers.PreTrainedModel, transformers.GenerationMixin):  # type: ignore[misc]
        config_class = transformers.PretrainedConfig
        main_input_name = "input_ids"

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.anchor = torch.nn.Parameter(torch.zeros(1))
            self.encoder = Encoder()
            self.post_init()

        def get_encoder(self, *_: Any, **__: Any) -> Any:
            return self.encoder

        def forward(self, decoder_input_ids: Any = None, encoder_outputs: Any = None, **_: Any) -> Any:
            rows = [
                runner.log_probs(tuple(source), inputs)
                for source, inputs in zip(
                    encoder_outputs[0][:, :, 0].int().tolist(), decoder_input_ids.tolist(), strict=True
                )
            ]
            logits = torch.stack([torch.from_numpy(row) for row in rows])[:, None]
            return outputs.Seq2SeqLMOutput(logits=logits)

        def prepare_inputs_for_generation(self, decoder_input_ids: Any, encoder_outputs: Any = None, **_: Any) -> Any:
            return {"decoder_input_ids": decoder_input_ids, "encoder_outputs": encoder_outputs}

    config = transformers.PretrainedConfig(
        is_encoder_decoder=True,
        vocab_size=51,
        pad_token_id=PAD_ID,
        eos_token_id=EOS_ID,
        decoder_start_token_id=START_ID,
    )
    return Toy(config).eval()


@pytest.mark.parametrize("eos_weight", [-1.0, 3.0])
def test_beam_search_gives_what_generate_gives(eos_weight: float) -> None:
    runner = FakeRunner(max_slots=24, eos_weight=eos_weight)
    choose = random.Random(str(eos_weight))
    sequences = []
    for number in range(16):
        beam_size = choose.choice([2, 3, 4, 8])
        given = tuple(choose.choices([3, 9], k=choose.randint(1, 3))) if number % 2 else ()
        sequences.append(
            new_sequence(
                source_ids=(number + 2, choose.randint(2, 40), EOS_ID),
                beam_size=beam_size,
                num_hypotheses=choose.randint(1, beam_size),
                max_output_tokens=len(given) + choose.randint(1, 16),
                length_penalty=choose.choice([0.0, 1.0, 2.0, -1.0]),
                target_prefix_ids=() if given else tuple(choose.choices([3, 9], k=choose.randint(0, 2))),
                output_prefix_ids=given,
                stops_early=choose.random() < 0.5,
                forces_end=choose.random() < 0.5,
            )
        )
    for update in decode(runner, sequences):
        theirs = generate(runner, update.sequence)
        ours = [
            (*hypothesis.token_ids, *[EOS_ID] * (hypothesis.finish_reason is FinishReason.STOP))
            for hypothesis in update.hypotheses
        ]
        assert ours == [ids for ids, _ in theirs]
        assert [hypothesis.score for hypothesis in update.hypotheses] == pytest.approx(
            [score for _, score in theirs], rel=1e-5
        )
