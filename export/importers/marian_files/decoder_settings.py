"""`decoder.yml`: how Marian translates with a model, and which files it is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from export.importers import stored_file
from export.importers.marian_files.yaml_file import parse_settings
from export.importers.parts import read_part
from service.bundle.manifest_parts import GenerationDefaults
from service.domain.errors import shown
from service.domain.options import MAX_BEAM_SIZE

DECODER_NAME = "decoder.yml"
# Settings that would change translations, with the values at which they don't.
_REFUSED: Mapping[str, tuple[Any, ...]] = {
    "word-penalty": (0,),
    "output-sampling": ([], False, "", "0"),
    "force-decode": (False,),
    "factor-weight": (1,),
    "xml-input": (False,),
}
_MOST_FACTOR = 100.0


@dataclass(frozen=True, slots=True)
class DecoderSettings:
    """Base names of the files, whose paths may be another machine's, and the options of a search.

    `None` is what the file omits: the beam size, the exponent of the length penalty, the most tokens per source token.
    """

    models: tuple[str, ...] = ()
    vocabularies: tuple[str, ...] = ()
    beam_size: int | None = None
    normalize: float | None = None
    max_length_factor: float | None = None
    allows_unknown: bool = False

    def defaults(self, max_length_factor: float) -> GenerationDefaults:
        """Return the bundle's; `max_length_factor` is for a file that does not say it."""
        factor = max_length_factor if self.max_length_factor is None else self.max_length_factor
        return GenerationDefaults(
            beam_size=min(self.beam_size or 1, MAX_BEAM_SIZE),
            length_penalty=1.0 if self.normalize is None else self.normalize,
            narrows=True,
            options={"max_length_ratio": factor},
        )

    def notes(self) -> tuple[str, ...]:
        if self.beam_size is None or self.beam_size <= MAX_BEAM_SIZE:
            return ()
        return (f"{DECODER_NAME} has beam-size {self.beam_size}; requests have {MAX_BEAM_SIZE} at most, the default",)


def read_decoder(path: Path, problems: list[str]) -> DecoderSettings:
    """Read a file, which may be missing; what is not supported is added to `problems`."""
    settings = read_part(path.name, lambda: parse_settings(stored_file.read(path)), problems) if path.exists() else None
    if settings is None:
        return DecoderSettings()
    found: list[str] = []
    for name, allowed in _REFUSED.items():
        value = settings.get(name, allowed[0])
        if value not in allowed:
            found.append(f"{name} is {shown(value)}; supported: {allowed[0]}")
    models = _base_names(settings, "models", found)
    if len(models) > 1:
        found.append(f"models are {len(models)}, an ensemble; supported: one")
    beam_size = _number(settings, "beam-size", 1000, found)
    decoder = DecoderSettings(
        models=models,
        vocabularies=_base_names(settings, "vocabs", found),
        beam_size=None if beam_size is None else max(1, int(beam_size)),
        normalize=_number(settings, "normalize", 10, found),
        max_length_factor=_number(settings, "max-length-factor", _MOST_FACTOR, found),
        allows_unknown=settings.get("allow-unk", False) is True,
    )
    problems += [f"{path.name}: {problem}" for problem in found]
    return decoder


def _base_names(settings: Mapping[str, Any], name: str, problems: list[str]) -> tuple[str, ...]:
    value = settings.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        problems.append(f"{name} is {shown(value)}, expected a list of files")
        return ()
    return tuple(PurePosixPath(each.replace("\\", "/")).name for each in value)


def _number(settings: Mapping[str, Any], name: str, most: float, problems: list[str]) -> float | None:
    """Return a number; `True` is Marian's 1."""
    value = settings.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or not 0 <= value <= most:
        problems.append(f"{name} is {shown(value)}, expected a number from 0 to {most:g}")
        return None
    return float(value)
