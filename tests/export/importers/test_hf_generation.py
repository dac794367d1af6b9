"""Generation settings: what is taken over, and that everything else is refused."""

from typing import Any

import pytest

from export.importers.hf_generation import read_generation
from service.bundle.manifest import GenerationDefaults

IDS = {"eos_token_id": 0, "pad_token_id": 9, "decoder_start_token_id": 9}


def test_published_settings_of_opus_mt() -> None:
    problems: list[str] = []
    found = read_generation(
        {
            **IDS,
            "num_beams": 6,
            "max_length": 512,
            "bad_words_ids": [[9], [0]],
            "forced_eos_token_id": 0,
            "renormalize_logits": True,
        },
        problems,
    )
    assert not problems
    assert found.defaults == GenerationDefaults(beam_size=6, forces_end=True)
    assert (found.suppressed_ids, found.renormalizes, found.max_decoder_tokens) == ((9,), True, 512)


def test_what_is_not_said_is_as_in_transformers() -> None:
    found = read_generation({**IDS, "max_length": 20, "eos_token_id": [0]}, [])
    assert found.defaults == GenerationDefaults()
    assert found.max_decoder_tokens is None
    assert read_generation({**IDS, "max_new_tokens": 30, "max_length": 512}, []).max_decoder_tokens == 31


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"eos_token_id": [0, 1]}, "eos_token_id is [0, 1]; expected one token id"),
        ({"pad_token_id": None}, "pad_token_id is None"),
        ({"forced_eos_token_id": 5}, "forced_eos_token_id is 5; supported is eos_token_id, which is 0"),
        ({"bad_words_ids": [[1, 2]]}, "supported are single tokens"),
        ({"repetition_penalty": 1.3}, "repetition_penalty is 1.3; supported is 1"),
        ({"do_sample": True}, "do_sample is True; supported is False"),
        ({"suppress_tokens": [4]}, "suppress_tokens is [4]; supported is []"),
        ({"num_beams": True}, "num_beams is True; supported is 1 to 8"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"),
        ({"max_length": 2}, "max_length is 2; expected 3 or more"),
    ],
)
def test_what_is_not_supported_is_told(settings: dict[str, Any], told: str) -> None:
    problems: list[str] = []
    read_generation({**IDS, **settings}, problems)
    assert [problem for problem in problems if told in problem], problems
