"""The languages of IndicTrans2, codes such as `hin_Deva`, their scripts, and conversion between these.

Their rules are from `IndicTransToolkit` 1.1.1 (`processor.pyx`), and hence the training; the conversion is from
`UnicodeIndicTransliterator` of indic-nlp-library 0.92 (MIT).
"""

import functools
import re

from service.text.indic.rewriting import Rule

LANGUAGE_CODE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
ENGLISH = "eng_Latn"

# Where the scripts' letters begin in Unicode: the same ones have the same distance from there (from ISCII). The last
# places of a block are the script's own.
BLOCKS = {
    "Deva": 0x0900,
    "Beng": 0x0980,
    "Guru": 0x0A00,
    "Gujr": 0x0A80,
    "Orya": 0x0B00,
    "Taml": 0x0B80,
    "Telu": 0x0C00,
    "Knda": 0x0C80,
    "Mlym": 0x0D00,
}
_LIKE = {"Olck": "Orya", "Mtei": "Deva"}  # scripts that are treated as others, though their letters have other places
_OTHERS = ("Arab", "Latn")
_DANDAS = "।॥"  # of all scripts, though they stand in Devanagari's block
_TAMIL_JA, _TAMIL_PA, _SHA, _SSA = 0x1C, 0x2A, 0x36, 0x37


def is_known(code: str) -> bool:
    return script_of(code) in {*BLOCKS, *_LIKE, *_OTHERS}


def script_of(code: str) -> str:
    return code.rpartition("_")[2]


def rules_script(code: str) -> str:
    """Return the script whose rules apply to a language; it is Devanagari for those without rules."""
    script = script_of(code)
    return script if script in BLOCKS or script in _OTHERS else _LIKE.get(script, "Deva")


@functools.cache
def conversion(source: str, target: str) -> Rule:
    """Return the rule that writes the letters of one script in another; both are among `BLOCKS`."""
    start, other = BLOCKS[source], BLOCKS[target]
    places = (at for at in range(0x70) if chr(start + at) not in _DANDAS)
    table = {chr(start + at): chr(other + (_in_tamil(at) if target == "Taml" else at)) for at in places}
    return Rule(f"[{''.join(table)}]", lambda found: table[found[0]])


def _in_tamil(place: int) -> int:
    """Return the place of Tamil's letter instead: it writes all stops of a row, but the nasal, as the first.

    The rows of five begin at 0x15; the last one, of the lips, is moved by one.
    """
    row, column = divmod(place - 0x15, 5)
    if 0x15 <= place <= 0x28 and place != _TAMIL_JA and 0 < column < 4:
        return 0x15 + 5 * row
    if _TAMIL_PA < place <= _TAMIL_PA + 3:
        return _TAMIL_PA
    return _SSA if place == _SHA else place
