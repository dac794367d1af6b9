"""Conversion between the scripts of India: the same letter has the same place in each script's block of Unicode.

From `UnicodeIndicTransliterator` of indic-nlp-library 0.92 (MIT). The last places of a block are the script's own.
"""

from service.text.indic.languages import BLOCKS
from service.text.indic.rewriting import Rule, rule

_DANDAS = "।॥"  # of all scripts, though they stand in Devanagari's block
_TAMIL_JA, _TAMIL_PA, _SHA, _SSA = 0x1C, 0x2A, 0x36, 0x37


def conversion(source: str, target: str) -> Rule:
    """Return the rule that writes the letters of one script in another; both are among `BLOCKS`."""
    start, other = BLOCKS[source], BLOCKS[target]
    places = (at for at in range(0x70) if chr(start + at) not in _DANDAS)
    table = {chr(start + at): chr(other + (_in_tamil(at) if target == "Taml" else at)) for at in places}
    return rule(f"[{''.join(table)}]", lambda found: table[found[0]])


def _in_tamil(place: int) -> int:
    """Return the place of a letter that Tamil has instead: it writes all stops of a row, but the nasal, as the first.

    The rows of five begin at 0x15; the last one, of the lips, is moved by one.
    """
    row, column = divmod(place - 0x15, 5)
    if 0x15 <= place <= 0x28 and place != _TAMIL_JA and 0 < column < 4:
        return 0x15 + 5 * row
    if _TAMIL_PA < place <= _TAMIL_PA + 3:
        return _TAMIL_PA
    return _SSA if place == _SHA else place
