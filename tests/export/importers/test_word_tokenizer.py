"""Word lists of tutorials: the service's tokenizer gives id for id what the tutorials' own code gives."""

import collections
import json
import os
import pickle
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from export.importers.vocabulary import read_vocabulary
from export.importers.word_list import read_words
from export.importers.word_tokenizer import read_options
from service.text.tokenizer_json import JsonTokenizer

SPECIAL = ["<unk>", "<pad>", "<sos>", "<eos>"]
SMILES = r"\[[^\]]*\]|%\d{2}|Br|Cl|[\s\S]"
NASTY = [*"ab 'Σσςİé語.,!?;:\"()<>/\t\n\x1c\x85\xa0\u3000", "<br />", "ΟΔΟΣ ", " the cat", "[C@H]", "Br", "%12", "C1"]


def basic_english(line: str) -> list[str]:
    """Split as torchtext's `_basic_english_normalize` does, from which the replacements are."""
    line = line.lower()
    for found, put in [
        ("'", " '  "),
        ('"', ""),
        (r"\.", " . "),
        ("<br />", " "),
        (",", " , "),
        (r"\(", " ( "),
        (r"\)", " ) "),
        ("!", " ! "),
        (r"\?", " ? "),
        (";", " "),
        (":", " "),
    ]:
        line = re.sub(found, put, line)
    return line.split()


def smiles(text: str) -> list[str]:
    """Split as annalog's and REINVENT's `SMILESTokenizer` does: by one expression after another."""
    parts = [text]
    for expression in (r"(\[[^\]]*\])", r"(%\d{2})", "(Br|Cl)"):
        parts = [
            new for part in parts for new in ([part] if len(part) > 1 and is_token(part) else split(part, expression))
        ]
    return [token for part in parts for token in ([part] if is_token(part) else part)]


def split(text: str, expression: str) -> list[str]:
    return [part for part in re.split(expression, text) if part]


def is_token(part: str) -> bool:
    return re.fullmatch(r"\[[^\]]*\]|%\d{2}|Br|Cl", part) is not None


SPLITS: dict[str, tuple[Callable[[str], list[str]], dict[str, Any]]] = {
    "words": (str.split, {"split": "whitespace"}),
    "words in lower case": (lambda text: text.lower().split(), {"split": "whitespace", "lowercase": True}),
    "basic_english": (basic_english, {"split": "basic_english"}),
    "characters": (list, {"split": "characters"}),
    "SMILES": (smiles, {"regex": SMILES, "join": ""}),
}


def texts() -> list[str]:
    chance = random.Random(50)
    return ["".join(chance.choices(NASTY, k=chance.randrange(30))) for _ in range(500)]


def served(path: Path, said: dict[str, Any] | None = None) -> JsonTokenizer:
    """Return the service's tokenizer of a vocabulary's file, by way of the one that a bundle gets."""
    vocabulary = read_vocabulary(path, None if said is None else read_options(said))
    assert callable(vocabulary.file)
    written = path.parent / "written.json"
    vocabulary.file(written)
    return JsonTokenizer(written)


def saved(path: Path, document: Any) -> Path:
    path.write_text(document if path.suffix == ".txt" else json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SPLITS)
def test_ids_are_those_of_the_tutorials_code(name: str, tmp_path: Path) -> None:
    own, said = SPLITS[name]
    words = sorted({word for text in texts()[::2] for word in own(text)} - set(SPECIAL))
    ids = {word: index for index, word in enumerate(SPECIAL + words)}
    tokenizer = served(saved(tmp_path / "vocab.json", ids), said)
    for text in texts():
        assert tokenizer.encode(text) == [ids.get(word, 0) for word in own(text)], ascii(text)
    join = "" if name in ("characters", "SMILES") else " "
    assert tokenizer.decode([2, *range(4, 20), 3, 1]) == join.join(words[:16])
    assert not {1, 2, 3} & set(tokenizer.encode("<pad> a <sos> a <eos>")), "special tokens in a text are text"


def test_bytes(tmp_path: Path) -> None:
    ids = {word: index for index, word in enumerate(["<pad>", "<s>", "</s>"])}
    ids |= {f"<0x{byte:02X}>": byte + 3 for byte in range(256)}
    tokenizer = served(saved(tmp_path / "bytes.json", ids), {"split": "bytes"})
    for text in texts():
        assert tokenizer.encode(text) == [byte + 3 for byte in text.encode()]
        assert tokenizer.decode(tokenizer.encode(text)) == text


class Vocab:
    """As torchtext's before 0.9, or a tutorial's own, pickled under its name."""

    def __init__(self) -> None:
        self.freqs = collections.Counter(["ein", "ein"])
        self.itos = [*SPECIAL, "ein", "hund"]
        self.stoi = collections.defaultdict(int, {word: index for index, word in enumerate(self.itos)})
        self.vectors = torch.ones(2)


class NewVocab:
    """As torchtext's since 0.9, whose C++ object has (version, numbers, tokens, tensors)."""

    def __getstate__(self) -> Any:
        return {"training": True, "vocab": Inner()}


class Inner:
    def __getstate__(self) -> Any:
        return ("0.0.2", [], [*SPECIAL, "ein", "hund"], [])

    def __setstate__(self, state: Any) -> None:
        raise AssertionError("nothing of a file is run")


WORDS = dict(zip([*SPECIAL, "ein", "hund"], range(6), strict=True))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("src_vocab.txt", "<unk>\n<pad>\n<sos>\n<eos>\nein\nhund\n"),
        ("vocab.json", list(WORDS)),
        ("vocab.json", WORDS),
        ("vocab.json", {str(index): word for word, index in WORDS.items()}),
        ("vocab.json", {"config": 1, "word2idx": WORDS, "idx2word": {}}),
        *((name, content) for name in ("vocab.pkl", "vocab.pt") for content in (WORDS, Vocab(), NewVocab())),
        ("vocab.pkl", {"itos": list(WORDS), "stoi": WORDS}),
        ("vocab.pkl", dict([*WORDS.items(), *((index, word) for word, index in WORDS.items())])),
        ("old.pth", Vocab()),
    ],
)
def test_layouts_of_files(name: str, content: Any, tmp_path: Path) -> None:
    path = tmp_path / name
    if path.suffix == ".pkl":
        path.write_bytes(pickle.dumps(content))
    elif path.suffix in (".pt", ".pth"):
        torch.save(content, path, _use_new_zipfile_serialization=path.suffix == ".pt")
    else:
        saved(path, content)
    assert read_words(path) == (WORDS, {})


def test_dictionaries_of_fairseq_and_tokenizers_of_keras(tmp_path: Path) -> None:
    assert read_words(saved(tmp_path / "dict.de.txt", "ein 9\nhund 3\n"))[0] == {
        word: index for index, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", "ein", "hund"])
    }
    settings = {"num_words": 4, "filters": "!.\t\n", "lower": True, "split": " ", "char_level": False}
    settings |= {"oov_token": "<OOV>", "word_index": json.dumps({"<OOV>": 1, "ein": 2, "hund": 3, "bellt": 4})}
    path = saved(tmp_path / "keras.json", json.dumps({"class_name": "Tokenizer", "config": settings}))
    tokenizer = served(path)
    assert tokenizer.encode("Ein\tHund!bellt. ein") == [2, 3, 1, 2]
    assert tokenizer.decode([2, 3, 0]) == "ein hund"


class Runs:
    def __reduce__(self) -> Any:
        return os.system, ("touch ran",)


@pytest.mark.parametrize(
    ("content", "said", "problem"),
    [
        (WORDS, None, 'does not say how texts are split; give "tokenizer" in --config'),
        ({"ein": 0}, {"split": "whitespace"}, 'give one of its tokens as "unknown"'),
        ({"<s>": 0, "<bos>": 1, "<unk>": 2}, {"split": "whitespace"}, "'<s>', '<bos>' are several; give \"start\""),
        (WORDS, {"split": "whitespace", "end": "$"}, "'$' is not one of its 6 tokens; give \"end\""),
        (WORDS, {"split": "spacy"}, "known: whitespace, basic_english, characters, bytes, or give regex"),
        (WORDS, {"regex": "[a-z]+"}, "regex needs join"),
        (WORDS, {"regex": "(", "join": ""}, "regex: '(' can't be used"),
        (WORDS, {"split": "whitespace", "lower": True}, "'lower' is unknown; known: split, regex, lowercase"),
        (WORDS, {"split": "bytes"}, "it lacks <0x00> and 255 more"),
        ({"<unk>": 0, "ein": 0}, {"split": "whitespace"}, "it has the token 'ein' or the id 0 twice"),
        ({"<unk>": 0, "ein": "x"}, {"split": "whitespace"}, "it maps 'ein' to 'x', expected a token and its id"),
        (Runs(), {"split": "whitespace"}, "it has no list of tokens and no ids by token"),
        (collections.UserList(), {"split": "whitespace"}, "it maps 'data' to [], expected a token and its id"),
    ],
)
def test_refusals(content: Any, said: Any, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "vocab.pkl"
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(ValueError, match=re.escape(problem)):
        read_vocabulary(path, None if said is None else read_options(said))
    assert not Path("ran").exists()
    if isinstance(content, Runs):  # the control: an ordinary reader runs it
        pickle.loads(path.read_bytes())
        assert Path("ran").exists()


def test_a_damaged_pickle_reserves_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "vocab.pkl"
    for data in (b"", b"\x80\x05\x96" + b"\xff" * 7 + b"\x00", b"K\x01r\xff\xff\xff\x7f.", pickle.dumps(WORDS)[:-9]):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"it is not a pickle, or it is damaged|no list of tokens"):
            read_words(path)
