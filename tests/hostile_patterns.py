"""Patterns of placeholders that take long to compile or to search for, each with a text in which they do."""

from collections.abc import Iterator, Mapping

LONGEST = 131_072  # characters: what a call may have by default

_UNITS = {
    "letters": "a",
    "two": "abbabaabbaababbababbabaa",
    "digits": "7",
    "words": "ab, k ",
    "ideographs": "字",
    "mixed": "aé字ßЖkſK\U0001f355",
}
_PATTERNS: Mapping[str, tuple[str, ...]] = {
    "letters": (
        *(r"(?:\w{0,30}){30}!|\w", r"(?:\w{0,30}){30}!", r"(?:(?:a?){18}){18}!|a", r"(?:(?:(?:\w)*?){0,9}){0,20}!|."),
        *(r"(?:(?:\w\w){0,30}){0,9}?!", r"(?:a|aa){1,190}b", r"[[:alpha:]]{0,999}?" * 10, "a{0,300}" * 25),
        *(r"(?i)(?:[a-zß-ÿ]{0,30}){20}!|.", r"(?:a|b|c|d|e|f|g|h|i|j){48}x|.", r".{0,900}?!|.", r".*!|.", r"\w"),
        *(r"(?:.*a){20}!|.", r"(a*)*b|a", r"(x+x+)+y|.", r"(a|aa)+$", r"(?:a+){2,330}\z", r"a.{0,498}!|a"),
    ),
    "two": (
        *(r"(a|b|ab|ba){0,90}!|.", r"(?:|a|b|ab){0,120}!|.", r"(?:[ab]{0,9}b){0,90}c|.", r"[ab]*a[ab]{14}!|."),
        *(r"(?:a|(?:b|(?:a|b)){9}){9}x|.", r"(?:.*a.{19})!|."),
    ),
    "digits": (r"(?:\d){0,1}(?:\d){0,999}" * 8,),
    "words": (
        *(r"(?:\b|\w?){190}x", r"(?:x|\b\w{0,30}){28}!|.", r"(?:\b\w{1,9}\b\s?){0,70}!|\w", r"(?:\B\w){0,330}!|\w"),
        *(r"(?m)(?:^|\w){0,240}$!|.", r"(?:.*?,){0,99}!|."),
    ),
    "ideographs": (
        *(r"(?:.*){0,330}z$", r"(?:(?:[^!])*){0,240}[\pL\pN\pM].{30}z", r"(?:[^a][^b]){0,330}!|.", r"."),
        *(r"(?:(?:[\pL\pN\pM])*){1,9}!|\w", r"(?:(?:|[\pL\pN\pM]){0,9})*!", r"(?:\PN[ab]){1,30}?z$"),
        r"(?:[^a]^)*?(?:.){0,490}!",
    ),
    "mixed": (
        *(r"(?:.{0,20}){0,40}!|.", "(?:é){0,300}" * 16, "(?i:k){0,999}" * 15, r"(?:\pL{0,3}){3}!|\pL", r"\pL?" * 49),
        *(r"[\pL\pM]{1,8}!|.", r"[^\x00-\x7f]{1,990}!|.", r"(?:\p{Lu}|\p{Ll}){0,4}!|.", r"(?i)(?:ſ|k|å){0,160}!|."),
        *(r"(?i)\pL+!|.", r"(?s).{0,990}!|."),
    ),
}


def hostile_searches(num_characters: int) -> Iterator[tuple[str, str]]:
    """Yield each pattern with a text of so many characters."""
    for name, patterns in _PATTERNS.items():
        text = (_UNITS[name] * num_characters)[:num_characters]
        for pattern in patterns:
            yield pattern, text
