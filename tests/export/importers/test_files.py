"""Files of safetensors and of SentencePiece are read as their own libraries read them; damaged ones are refused."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from export.architecture.stored import as_array
from export.importers.safetensors_file import read_safetensors
from export.importers.sentencepiece_file import read_facts
from tests.tokenizer_folders import ENGLISH, train_sentencepiece


def test_arrays_are_torchs_and_the_file_stays_as_it_is(tmp_path: Path) -> None:
    path, rng = tmp_path / "model.safetensors", torch.Generator().manual_seed(0)
    drawn = torch.randn(7, 5, generator=rng)
    kinds = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.bool]
    tensors = {str(kind): drawn.to(kind) for kind in kinds} | {"one": torch.tensor(3.0), "none": torch.zeros(0, 4)}
    save_file(tensors, path, metadata={"format": "pt"})
    content, arrays = path.read_bytes(), read_safetensors(path)
    assert arrays.keys() == tensors.keys()
    for name, tensor in tensors.items():
        expected = as_array(tensor)
        assert arrays[name].dtype == expected.dtype
        np.testing.assert_array_equal(arrays[name], expected)
        arrays[name][...] = 0
    assert path.read_bytes() == content


@pytest.mark.parametrize("kept", [0, 5, 40, -1])
def test_a_file_cut_short_is_refused(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.ones(50)}, path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"model.safetensors is damaged, truncated or not a file of weights \("):
        read_safetensors(path)


def test_types_that_no_model_has_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.ones(50).to(torch.float8_e4m3fn)}, path)
    with pytest.raises(ValueError, match="weight has numbers of type F8_E4M3; supported: F64, F32"):
        read_safetensors(path)


def test_a_file_cut_anywhere_is_refused_even_between_two_pieces(tmp_path: Path) -> None:
    data = train_sentencepiece(ENGLISH, size=80)
    reasons = set()
    normalizer = data.rindex(b"nmt_nfkc")
    for length in range(0, normalizer, 3):
        (tmp_path / "a.spm").write_bytes(data[:length])
        with pytest.raises(ValueError, match="it is") as refusal:
            read_facts(tmp_path / "a.spm")
        reasons.add(str(refusal.value)[:14])
    assert reasons == {"it is not a Se", "it is cut shor"}
    with pytest.raises(ValueError, match="it is missing"):
        read_facts(tmp_path / "b.spm")
