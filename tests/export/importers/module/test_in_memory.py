"""`convert` of a module or a state dict of this process: test_your_transformer.py has what it writes."""

import copy
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from export.convert import convert
from export.importers.imported import CheckpointError
from tests.export.importers.module.models import MODELS, SOURCE_SIZE, TARGET_SIZE, randomized
from tests.export.importers.module.test_reading import SAID
from tests.export.importers.state_dict.checkpoints import SOURCE_IDS, train_json_tokenizer

TEXTS = ("the house is near the sea", "close the window and save the file", "where is the railway station") * 3


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what accompanies a model, with paths as texts."""
    folder = tmp_path_factory.mktemp("tokenizers")
    sizes = (SOURCE_SIZE, TARGET_SIZE)
    source, target = (str(train_json_tokenizer(TEXTS, folder / f"{size}.json", size, SOURCE_IDS)) for size in sizes)
    languages = {"source_language": "en", "target_language": "de"}
    return {"tokenizer": source, "target_tokenizer": target, "config": SAID, **languages}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:Support for mismatched")
def test_a_module_stays_as_it_was(said: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It may be in training, half of it frozen, hold what it computed, and be called otherwise."""
    module = randomized(MODELS["torch post"]()).train()
    module.last = module(torch.ones(1, 2, dtype=torch.long), torch.ones(1, 3, dtype=torch.long))
    module.get_submodule("transformer.encoder").eval().requires_grad_(False)
    before, modes = copy.deepcopy(module.state_dict()), [each.training for each in module.modules()]
    learns = [each.requires_grad for each in module.parameters()]
    output = str(tmp_path / "post" / "1")
    said = said | {"config": SAID | {"max_target_positions": 16}}  # as long are the outputs of the reference
    found = convert(module, output, precision="int8", logits=lambda model, *ids: model(*ids), **said)
    assert f"post: {found.architecture['num_parameters'] / 1e6:.1f} M parameters" in capsys.readouterr().out
    assert [each.training for each in module.modules()] == modes
    assert [each.requires_grad for each in module.parameters()] == learns
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert found.verification["fidelity"]["reference"] == "its author's Pytorch"


class Locked(nn.Linear):
    def __init__(self) -> None:
        super().__init__(2, 2)
        self.lock = threading.Lock()


Given = nn.Module | Mapping[str, Any] | Path
REFUSED: dict[str, tuple[Callable[[], Given], dict[str, Any], str]] = {
    "no tokenizer": (MODELS["packed"], {"tokenizer": None}, r"^Handwritten can't be converted: --tokenizer is missing"),
    "no such tokenizer": (MODELS["packed"], {"tokenizer": "a.json"}, "--tokenizer a.json is not a file"),
    "no languages": (MODELS["packed"], {"source_language": ""}, "--source-language is missing"),
    "an unknown setting": (MODELS["packed"], {"config": SAID | {"heads": 4}}, "config: heads is unknown"),
    "names for a module": (MODELS["packed"], {"names": "a.toml"}, "--names is for bare state dicts"),
    "a lock": (Locked, {}, r"the module: it can't be copied \(TypeError: .*lock"),
    "a module that is none": (lambda: nn.Linear(2, 2), {}, "the module: the model can't be called with ids of shapes"),
    "another's names": (
        lambda: MODELS["packed"]().state_dict(),
        {},
        "^model can't be converted: the state dict: .*names",
    ),
    "no tensors": (lambda: {"a": [1.0]}, {}, "the state dict: 'a' holds list, expected a tensor"),
    "a call for a file": (lambda: Path(__file__), {"logits": len, "kind": "pytorch"}, "--logits is for modules in"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, said: dict[str, Any], tmp_path: Path) -> None:
    make, changed, expected = REFUSED[name]
    with pytest.raises(CheckpointError, match=expected) as caught:
        convert(make(), tmp_path / "1", **said | changed)
    assert "\n" not in str(caught.value)
    assert not any(tmp_path.iterdir())
