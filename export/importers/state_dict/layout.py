"""Layouts: the names that a kind of state dict has, line by line, and ours. They are data: `layouts/*.toml`, `--names`.

A line of `[names]` maps a pattern of theirs to ours, or to `["ours", "folding", ...]` (`foldings.py`; "fused|packed" is
a choice that `attention` in --config makes), or to "" if it is left out. `{layer}` and `{head}` are numbers, `{side}`
and `{weight}` the words below; a layout's `[words]` are further ones, each with its meaning in ours. Heads are joined
by number. "both." as ours is both sides. `[config]` is what the code behind these names computes, unless --config says
otherwise; `[saved]` is what whole checkpoints say of themselves (`saved.py`).
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from export.architecture import ModelConfig
from export.architecture.names import ENCODER_TABLE
from export.importers import stored_file
from export.importers.state_dict.foldings import FOLDINGS

FOLDER = Path(__file__).parent / "layouts"
SCALE = ".scale"  # of a layer: what its outputs are multiplied by (LayerScale: Touvron et al. 2021, equation 4)
_WORDS = {
    "side": {each: each for each in ("encoder", "decoder")},
    "weight": {each: each for each in ("weight", "bias")},
}
_SAVED = {"settings": list, "vocabularies": list, "always": dict, "keys": dict}
_MAX_BYTES = 2**20
_LISTED = 2  # names in an error
_EVERY_MODEL = (
    ENCODER_TABLE,
    "encoder.layers.0.self_attention.query.weight",
    "encoder.layers.0.feed_forward.inner.weight",
    "decoder.layers.0.cross_attention.query.weight",
)
_PARTS = ("query", "key", "value", "gate", "inner")  # what `*` stands for
_NUMBERS = ("layer", "head")
_RECURRENT = re.compile(r"weight_hh_l\d")  # of torch's LSTM and GRU
# Words that names of a side have, at least one of them.
_SIDES = {"encoder": re.compile("enc|src|source"), "decoder": re.compile("dec|tgt|trg|target|cross|lm_head|wte")}
_PLACEHOLDER = re.compile(r"{([a-zA-Z_]\w*)}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Line:
    """A pattern of theirs, ours for it, and the names of foldings on the way."""

    theirs: str
    ours: str
    foldings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A recognized name of a file: `line` with `ours` filled in by `words` of theirs, and by the number of a head."""

    line: Line
    ours: str
    words: Mapping[str, str]

    @property
    def head(self) -> int:
        return int(self.words.get("head", 0))

    @property
    def is_by_head(self) -> bool:
        return "{head}" in self.line.theirs


@dataclass(frozen=True, slots=True)
class Layout:
    """The content of a layout's file, whose stem is `name`."""

    name: str
    about: str
    lines: tuple[Line, ...]
    words: Mapping[str, Mapping[str, str]]
    config: Mapping[str, Any]
    saved: Mapping[str, Any] = field(default_factory=dict)

    def find(self, names: Iterable[str]) -> dict[str, Found]:
        """Return what names are; those that the layout does not have are left out."""
        patterns = [(self._pattern(line.theirs), line) for line in self.lines]
        found: dict[str, Found] = {}
        for name in names:
            for pattern, line in patterns:
                if match := pattern.fullmatch(name):
                    said = match.groupdict()
                    filled = {key: self.words[key][word] if key in self.words else word for key, word in said.items()}
                    found[name] = Found(line, line.ours.format_map(filled), said)
                    break
        return found

    def theirs(self, ours: str, found: Iterable[Found]) -> str:
        """Return what a file in which so much is found calls one of our weights."""
        found = list(found)
        used, lines = (
            Counter(item for each in found for item in each.words.items()),
            Counter(each.line for each in found),
        )
        for line in sorted(self.lines, key=lambda each: -lines[each]):
            single = ours.replace("decoder.", "encoder.", 1) if line.ours.startswith("both.") else ours
            if match := self._pattern(line.ours.replace("both.", "encoder.", 1), is_ours=True).fullmatch(single):
                said = {"head": "1"} | match.groupdict()
                return line.theirs.format_map({key: self._theirs(key, word, used) for key, word in said.items()})
        return ours

    def part_of(self, names: Sequence[str]) -> tuple[int, str]:
        """Return how many names are of a part of such a model, and the first one with what a whole model has before."""
        words = {key: next(iter(self.words.get(key, "0"))) for key in [*self.words, *_NUMBERS]}
        lines = [line.theirs.split(".") for line in self.lines]
        ends = {".".join(each[at:]): ".".join(each[:at]) for each in lines for at in range(1, len(each) - 1)}
        patterns = [(self._pattern(end), before) for end, before in ends.items()]
        parts = {name: before for name in names for pattern, before in patterns if pattern.fullmatch(name)}
        text = next((f"{name}, without {before.format_map(words)} before it" for name, before in parts.items()), "")
        return len(parts), text

    def _theirs(self, key: str, word: str, used: Mapping[tuple[str, str], int]) -> str:
        choices = [theirs for theirs, ours in self.words.get(key, {}).items() if ours == word] or [word]
        return max(choices, key=lambda each: used.get((key, each), 0))

    def _pattern(self, text: str, *, is_ours: bool = False) -> re.Pattern[str]:
        """Compile a pattern; a placeholder that stands in it twice is the same word."""
        parts, seen = [], set[str]()
        for index, piece in enumerate(_PLACEHOLDER.split(text)):
            if index % 2 == 0:
                parts.append(re.escape(piece).replace(r"\*", f"(?:{'|'.join(_PARTS)})"))
            elif piece in seen:
                parts.append(f"(?P={piece})")
            else:
                seen.add(piece)
                words = self.words.get(piece, {})
                choices = sorted(set(words.values() if is_ours else words), key=len, reverse=True)
                parts.append(rf"(?P<{piece}>{'|'.join(map(re.escape, choices)) or '[0-9]{1,4}'})")
        return re.compile("".join(parts))


def choose_layout(names: Iterable[str], layouts: Sequence[Layout]) -> tuple[Layout, dict[str, Found]]:
    """Return the layout that most names are of, and what they are; a prefix that all of them have is no part of it."""
    names, prefix = sorted(names), ""
    while True:
        inner = [name.removeprefix(prefix) for name in names]
        layout, found = max(((each, each.find(inner)) for each in layouts), key=lambda each: len(each[1]))
        if 2 * len(found) > len(names):
            break
        first = f"{inner[0].partition('.')[0]}."
        if not all(name.startswith(first) and name != first for name in inner):
            raise ValueError(_no_layout([name.removeprefix(prefix) for name in names], layout, found, layouts))
        prefix += first
    for side in ("encoder", "decoder"):
        if not any(each.ours.startswith(f"{side}.layers.") for each in found.values()):
            example = layout.theirs(f"{side}.layers.0.feed_forward.inner.weight", found.values())
            raise ValueError(f"it holds no {side}, such as {example}; save the state_dict() of the whole model")
    return layout, {prefix + name: each for name, each in found.items()}


def _no_layout(names: Sequence[str], nearest: Layout, found: Mapping[str, Found], layouts: Sequence[Layout]) -> str:
    if recurrent := next((name for name in names if _RECURRENT.search(name)), None):
        return f"it is a recurrent network ({recurrent}); only encoder-decoder Transformers can be converted"
    count, part = max(each.part_of(names) for each in layouts)
    if 2 * count > len(names):
        return f"it holds a part of a Transformer by itself ({part}); save the state_dict() of the whole model"
    lacking = [side for side, words in _SIDES.items() if not any(words.search(name) for name in names)]
    if len(layouts) > 1 and len(lacking) == 1:
        return (
            f"it has no {lacking[0]} by its names ({', '.join(names[:_LISTED])}, ...); only encoder-decoder "
            "models can be converted"
        )
    missing = next(
        (theirs for ours in _EVERY_MODEL if (theirs := nearest.theirs(ours, found.values())) not in found), ""
    )
    first = next(name for name in names if name not in found)
    return (
        f"its names ({', '.join(names[:_LISTED])}, ...) match no known layout; nearest is {nearest.name}, "
        f"which has no {first} and needs {missing}: give the model's code with --like, or describe the "
        "names with --names"
    )


def shipped() -> list[Layout]:
    return [read_layout(path) for path in sorted(FOLDER.glob("*.toml"))]


def read_layout(path: Path) -> Layout:
    try:
        document = tomllib.loads(stored_file.read(path, _MAX_BYTES).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not TOML ({error})") from error
    saved = document.get("saved", {})
    unknown = sorted(document.keys() - {"about", "words", "names", "config", "saved"})
    if unknown or not isinstance(document.get("names"), dict) or not document["names"]:
        raise ValueError(f"{unknown[0]} is unknown" if unknown else "it has no table [names] of theirs and ours")
    if saved and {name: type(value) for name, value in saved.items()} != _SAVED:
        raise ValueError(f"[saved] needs {', '.join(_SAVED)}")
    words, config = document.get("words", {}), document.get("config", {})
    if not isinstance(words, dict) or not all(isinstance(each, dict) and each for each in words.values()):
        raise ValueError("[words] has no tables of their words and ours")
    if strange := [word for each in words.values() for word in each.values() if not isinstance(word, str)]:
        raise ValueError(f"[words] has {strange[0]!r}, expected a word of ours")
    of_model = {item.name for item in fields(ModelConfig)}
    if strange := sorted(config.keys() - of_model) if isinstance(config, dict) else [config]:
        raise ValueError(f"[config] has {strange[0]!r}, which is not a key of --config for models")
    lines = tuple(_line(theirs, value, _WORDS | words) for theirs, value in document["names"].items())
    return Layout(path.stem, str(document.get("about", "")), lines, _WORDS | words, config, saved)


def _line(theirs: str, value: Any, words: Mapping[str, Any]) -> Line:
    ours, *foldings = value if isinstance(value, list) and value else [value]
    if not isinstance(ours, str):
        raise ValueError(f"{theirs} is {value!r}, expected our name, or a list of it and foldings")
    keys, needed = (_PLACEHOLDER.findall(text) for text in (theirs, ours))
    if strange := [key for key in (*keys, *needed) if key not in words and key not in _NUMBERS]:
        raise ValueError(f"{{{strange[0]}}} in {theirs} is neither {{layer}}, {{head}} nor in [words]")
    if set(needed) - set(keys) or re.search("[{}]", _PLACEHOLDER.sub("", theirs + ours)):
        raise ValueError(f"{theirs} lacks what {ours} has in braces")
    if foldings == [SCALE[1:]]:
        return Line(theirs, ours + SCALE)
    for folding in foldings:
        if not isinstance(folding, str) or not {*folding.split("|")} <= FOLDINGS.keys():
            raise ValueError(f"{theirs}: {folding!r} is not a folding; allowed: {', '.join([*FOLDINGS, SCALE[1:]])}")
    return Line(theirs, ours, tuple(foldings))
