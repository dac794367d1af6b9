"""English words and punctuation apart, and together again, as Moses does, which the models' training used.

From sacremoses 0.2.0 (`normalize.py`, `tokenize.py`, MIT), for lang="en", without escapes. Letters are Python's, which
are newer than its list, without East Asian ones, which it lacks.
"""

import re
import unicodedata

from service.text.indic.rewriting import Rule

_INDIC_MARKS = "".join(chr(code) for code in range(0x0591, 0x0E00) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
_NO_DIGITS = "²³¹¼-¾৴-৹୲-୷௰-௲౸-౾൘-൞൰-൸⁰⁴-⁹₀-₉⅐-\u2182\u2185-\u2189①-⒛⓪-⓿❶-➓"
_EAST_ASIAN = "\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff"
_NUMERAL = rf"[\d{_NO_DIGITS}]"
_NOT_NUMERAL = rf"[^\d{_NO_DIGITS}]"
_LETTER = rf"(?:[^\W\d_{_NO_DIGITS}{_EAST_ASIAN}]|[{_INDIC_MARKS}])"
_NO_LETTER = rf"(?:(?!{_LETTER})[\s\S])"
_SIGN = rf"([^\w\s.'`,\-{_INDIC_MARKS}]|[_{_NO_DIGITS}{_EAST_ASIAN}])"

_PUNCTUATION: tuple[Rule, ...] = (  # what IndicProcessor's own rules leave of it
    Rule(r"\(", " ("),
    Rule(r"\)", ") "),
    Rule(r" +", " "),
    Rule(r"\) ([.!:?;,])", r")\1"),
    Rule(r"\( ", "("),
    Rule(r" \)", ")"),
    Rule(r"(\d) %", r"\1%"),
    Rule(r" ([:;])", r"\1"),
    Rule(r"''", ' " '),
    Rule(r"…", "..."),
    Rule(r" +", " "),
    Rule(r'"([,.]+)', r'\1"'),
    Rule(r"\A +| +\Z", ""),
)

# After these a full stop is part of the word; after the second ones if a number follows.
_WORDS = """
    A Adj Adm Adv Apr Asst Aug B Bart Bldg Brig Bros C Capt Cmdr Col Comdr Con Corp Cpl D DR Dec Dr Drs E Ens F Feb
    G Gen Gov H Hon Hosp Hr I Insp J Jan Jul Jun K L Lt M MM MR MRS MS Maj Mar Messrs Mlle Mme Mr Mrs Ms Msgr N Nos
    Nov Nr O Oct Op Ord P Pfc Ph Prof Pvt Q R Rep Reps Res Rev Rs Rt S Sen Sens Sep Sfc Sgt Sr St Supt Surg T U V W
    X Y Z e.g i.e rev v vs
"""
_ABBREVIATIONS = frozenset(_WORDS.split())
_BEFORE_NUMBERS = frozenset({"Art", "No", "pp"})


def _full_stop(found: re.Match[str]) -> str:
    """Separate the full stop of a word if it ends the sentence; group 2 begins the next one."""
    word, following = found[1], found[2]
    is_part = (
        ("." in word and re.search(_LETTER, word))
        or word in _ABBREVIATIONS
        or following.islower()
        or (word in _BEFORE_NUMBERS and following in "0123456789" and following)
    )
    return found[0] if is_part else f"{word} ."


ENGLISH_WORDS: tuple[Rule, ...] = (
    *_PUNCTUATION,
    Rule(r"[\x00-\x1f]", ""),
    Rule(r"\A +| +\Z", ""),
    Rule(_SIGN, r" \1 "),
    Rule(r"\.{2,}", r" \g<0> "),
    Rule(f"({_NOT_NUMERAL}),", r"\1 , "),
    Rule(f",({_NOT_NUMERAL})", r" , \1"),
    Rule(rf"({_NUMERAL}),$", r"\1 , "),
    Rule(f"({_NO_LETTER})'({_NO_LETTER})", r"\1 ' \2"),
    Rule(rf"((?!{_LETTER}){_NOT_NUMERAL})'({_LETTER})", r"\1 ' \2"),
    Rule(f"({_LETTER})'({_NO_LETTER})", r"\1 ' \2"),
    Rule(f"({_LETTER})'({_LETTER})", r"\1 '\2"),
    Rule(f"({_NUMERAL})'(s)", r"\1 '\2"),
    Rule(r"\s+", " "),
    Rule(r"(?<!\S)(?!\.\.+(?!\S))(\S+)\.(?!\S)(?=\s*(\S?))", _full_stop),
    Rule(r"\A\s+|\s+\Z", ""),
    Rule(r"(?<!\.)\.' ?\Z", " . ' "),
    Rule(r"\s+", " "),
    Rule(r"\A\s+|\s+\Z", ""),
)

_ESCAPES = {
    "&bar;": "|",
    "&#124;": "|",
    "&lt;": "<",
    "&gt;": ">",
    "&bra;": "[",
    "&ket;": "]",
    "&quot;": '"',
    "&apos;": "'",
    "&#91;": "[",
    "&#93;": "]",
}
_OPENS = re.compile(r"[({\[¿¡$¢-¥֏؋৲৳৻૱௹฿៛₠-⃀꠸﷼﹩＄￠￡￥￦]+")
_CLOSES = re.compile(r"[,.?!:;\\%}\])]+")
_CONTRACTION = re.compile(f"'{_LETTER}")
_QUOTES = re.compile("['\"„“`]+")


def english_joined(text: str) -> str:
    """Return English words with their punctuation; of two quotation marks of a kind, the second closes."""
    text = f" {text} ".replace(" @-@ ", "-")
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    words = text.replace("&amp;", "&").split()
    parts: list[str] = []
    opened: dict[str, bool] = {}
    space = ""
    for word, before in zip(words, ["", *words], strict=False):
        if _OPENS.fullmatch(word):
            parts += [space, word]
            space = ""
            continue
        is_attached = bool(_CLOSES.fullmatch(word) or (parts and _CONTRACTION.match(word)))
        if not is_attached and _QUOTES.fullmatch(word):
            kind = '"' if re.fullmatch("[„“]+", word) else word
            is_attached = opened.get(kind, False) or (word == "'" and before.endswith("s"))
            if not is_attached:
                opened[kind] = True
                parts += [space, word]
                space = ""
                continue
            opened[kind] = False
        parts += ["" if is_attached else space, word]
        space = " "
    return "".join(parts)
