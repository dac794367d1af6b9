"""The languages of IndicTrans2 and their scripts: codes such as `hin_Deva`.

Which rules apply to a language is from `IndicTransToolkit` 1.1.1 (`processor.pyx`), which has them from the training.
"""

import re

LANGUAGE_CODE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
ENGLISH = "eng_Latn"

# Where the scripts' letters begin in Unicode: the same ones have the same distance from there (from ISCII).
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


def is_known(code: str) -> bool:
    """Return whether there are rules for a language's script."""
    return script_of(code) in {*BLOCKS, *_LIKE, *_OTHERS}


def script_of(code: str) -> str:
    """Return the script that a language's code names, such as "Deva"."""
    return code.rpartition("_")[2]


def rules_script(code: str) -> str:
    """Return the script whose rules apply to a language; it is Devanagari for those without rules."""
    script = script_of(code)
    return script if script in BLOCKS or script in _OTHERS else _LIKE.get(script, "Deva")
