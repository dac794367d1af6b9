"""A model that a stranger published, with its own code, weights and vocabulary, by the public command."""

import itertools
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from export.cli import main
from export.engine_decode import greedy_options, open_engine
from export.importers.imported import Row
from export.importers.module.author import AuthorReference, load_author
from export.importers.state_dict.file import load, named_tensors
from service.bundle.manifest import Manifest
from service.text.tokenizers import load_tokenizer, of_pair

FACTORY = """
from model_files.seq2seq_attention import Decoder, Encoder, Seq2Seq


def build():
    sizes = (59, 256, 3, 8, 512, 0.1, "cpu", 102)
    return Seq2Seq(Encoder(*sizes), Decoder(*sizes), 1, 1, "cpu")


def logits(model, source_ids, target_ids):
    return model(source_ids, target_ids)[0]
"""
CONFIG = {
    "source_prefix_ids": [2],
    "source_eos_id": 3,
    "suppressed_ids": [],
    "tokenizer": {"regex": r"\[[^\]]*\]|%[0-9]{2}|Br|Cl|.", "join": ""},
}
STARTS, MIDDLES = ("CC", "c1ccccc1", "COC", "FC", "c1ccncc1"), ("C(=O)N", "C(=O)O", "CC(C)", "N(C)", "C=C")
ENDS, LONGEST = ("CCO", "c1ccccc1", "C(F)(F)F", "CCl"), 60


@pytest.mark.full
@pytest.mark.timeout(900)
def test_annalog(tmp_path: Path) -> None:
    """SMILES to those of analogues, annalog 1.0.6 (MIT): 100 of 100 greedy translations are its own code's."""
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path), "annalog==1.0.6"]
    result = subprocess.run(download, capture_output=True, text=True, timeout=600, check=False)
    if result.returncode:
        pytest.skip(f"pip does not download annalog: {result.stderr.strip()[-200:]}")
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path)
    folder, bundle = tmp_path / "annalog", tmp_path / "bundle"
    factory, config, weights = folder / "factory.py", folder / "config.json", folder / "ckpt_and_vocab/Lev_extended.pt"
    factory.write_text(FACTORY, encoding="utf-8")
    config.write_text(json.dumps(CONFIG), encoding="utf-8")
    like, words = f"{factory}:build", str(folder / "ckpt_and_vocab/stereo_experiment_vocab_ttf.pkl")
    languages = ["--source-language", "en", "--target-language", "en", "--no-prose"]
    given = ["--like", like, "--config", str(config), "--tokenizer", words, *languages, "-o", str(bundle)]
    converted = CliRunner().invoke(main, ["convert", str(weights), *given], catch_exceptions=False)
    assert converted.exit_code == 0, converted.output
    manifest = Manifest.load(bundle)
    tokenizer = of_pair(load_tokenizer(manifest.tokenizer, bundle), manifest.first_pair)
    texts = ["".join(parts) for parts in itertools.product(STARTS, MIDDLES, ENDS)]
    rows = [Row((2, *tokenizer.encode(text), 3), ()) for text in texts]
    author = AuthorReference(load_author(like, named_tensors(load(weights))), 2, 3, ())
    with open_engine(bundle, manifest) as engine:
        found = [best.token_ids for best, *_ in engine.decode(rows, greedy_options(manifest, LONGEST))]
    assert found == author.generate(rows, 1, LONGEST)
    assert len(set(found)) > len(rows) // 2, "a control: outputs are no noise, nor one"
