"""Arguments in the strings of programs, by gettext's flags, such as c-format: their positions, and what order means.

Source: https://www.gnu.org/software/gettext/manual/html_node/Translators-for-other-Languages.html and msgfmt's checks.
Unless they are numbered, most formats take arguments in the order of writing. So where a translation has another order,
they are numbered if the format has numbers.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArgumentFormat:
    """A program's arguments: `takes` is how many values one takes in order, 0 if numbered or named; `numbered` writes
    it with the number of its first value, from 0; `None` without numbers.

    `escaped` signs are doubled in text.
    """

    pattern: re.Pattern[str]
    takes: Callable[[str], int]
    numbered: Callable[[str, int], str] | None = None
    escaped: str = ""


_LENGTH = r"(?:hh|ll|[hlqjztLw]){0,1}"
_WIDTH = r"(?:\*(?:\d{1,3}\$)?|\d{1,6})?(?:\.(?:\*(?:\d{1,3}\$)?|\d{1,6})?)?"
_CONVERSION = "(?:[tT][A-Za-z]|[diouxXeEfFgGaAcsCSpnmbBhH@%qQrRv])"
_C = rf"%(?:\d{{1,3}}\$)?[-+ #0'I_,]{{0,8}}{_WIDTH}{_LENGTH}(?:{_CONVERSION}|<PRI\w{{1,16}}>)"
_STRINGS_DICT = r"%(?:\d{1,2}\$)?#@\w{1,60}@"  # of Apple's .stringsdict


def _of_printf(argument: str) -> int:
    is_free = "$" in argument or argument == "%arg" or argument[1] in "({" or argument[-1] in "%m"
    if is_free or (argument[1] == "<" and "PRI" not in argument):
        return 0
    return 1 + argument.count("*")


def _numbered_printf(argument: str, first: int) -> str:
    for star in range(argument.count("*")):
        argument = argument.replace("*", f"\0{first + star + 1}$", 1)
    number = first + argument.count("\0") + 1
    return f"%{number}${argument[1:]}".replace("\0", "*")


def _of_braces(argument: str) -> int:
    return 1 if re.match(r"\{[:!}]", argument) else 0


def _one(argument: str) -> int:
    return int(argument not in ("~~", "~%", "~&", "~\n", "%%"))


def _printf(pattern: str) -> ArgumentFormat:
    return ArgumentFormat(re.compile(pattern), _of_printf, _numbered_printf, "%")


_BRACES = r"\{\{|\}\}|\{[^{}]{0,200}(?:\{[^{}]{0,100}\}[^{}]{0,100}){0,5}\}"
_QT = ArgumentFormat(re.compile(r"%L?(?:\d{1,2}|n\b)"), lambda _: 0)
_LISP = ArgumentFormat(
    re.compile(r"~(?:[-+]?\d{1,6}|'.|,|[vV#]){0,8}[:@]{0,2}[^\s\w']|~(?:[-+]?\d{1,6}|'.|,|[vV#]){0,8}[:@]{0,2}\w"), _one
)
_C_PLUS_PLUS = ArgumentFormat(re.compile(_BRACES), _of_braces, lambda each, first: f"{{{first}{each[1:]}", "{}")
_BY_FLAG = {
    **dict.fromkeys(
        ["awk", "c", "d", "elisp", "java-printf", "javascript", "librep", "modula2", "perl", "sh-printf", "tcl"],
        _printf(_C),
    ),
    "objc": _printf(rf"{_STRINGS_DICT}|%arg\b|{_C}"),
    "php": _printf(_C.replace("[-+ #0'I_,]{0,8}", r"(?:[-+ 0]|'.){0,8}")),
    "gcc-internal": _printf(r"%(?:\d{1,3}\$)?[-+q# ]{0,4}(?:\.\*|\*)?(?:ll|[lwzt])?[A-Za-z%<>'{}]"),
    "gfc-internal": _printf(r"%(?:\d{1,3}\$)?[-+q# ]{0,4}(?:ll|[lwzt])?[A-Za-z%<>'{}]"),
    "ruby": _printf(rf"%<\w{{1,60}}>[-+ #0]{{0,4}}{_WIDTH}[A-Za-z]|%[-+ #0]{{0,4}}\d{{0,4}}\{{\w{{1,60}}\}}|{_C}"),
    "go": _printf(r"%[-+ #0]{0,4}(?:\[\d\])?" + _WIDTH + r"(?:\[\d\])?[A-Za-z%]"),
    "boost": _printf(rf"%\d{{1,2}}%|%\|[^|%]{{1,40}}\||{_C}"),
    **dict.fromkeys(("lua", "ocaml"), ArgumentFormat(re.compile(_C), _of_printf, None, "%")),
    "python": ArgumentFormat(
        re.compile(rf"%(?:\([^()]{{0,100}}\))?[-+ #0]{{0,5}}{_WIDTH}{_LENGTH}[A-Za-z%]"), _of_printf, None, "%"
    ),
    "object-pascal": ArgumentFormat(
        re.compile(r"%(?:\d{1,3}:)?-?(?:\*|\d{1,4})?(?:\.(?:\*|\d{1,4}))?[A-Za-z%]"),
        lambda each: 0 if ":" in each or each == "%%" else 1 + each.count("*"),
        lambda each, first: each if "*" in each else f"%{first}:{each[1:]}",
        "%",
    ),
    **dict.fromkeys(("python-brace", "c++", "rust"), _C_PLUS_PLUS),
    "csharp": ArgumentFormat(re.compile(_BRACES), lambda _: 0, None, "{}"),
    "java": ArgumentFormat(re.compile(_BRACES), lambda _: 0, None, "'"),
    "perl-brace": ArgumentFormat(re.compile(r"\{\w{1,60}\}"), lambda _: 0),
    "sh": ArgumentFormat(re.compile(r"\$(?:[A-Za-z_]\w{0,60}|\{[A-Za-z_]\w{0,60}\})"), lambda _: 0),
    **dict.fromkeys(("scheme", "lisp"), _LISP),
    "smalltalk": ArgumentFormat(re.compile(r"%\d|%<[^|<>]{0,100}\|[^|<>]{0,100}>%\d"), lambda _: 0),
    "ycp": ArgumentFormat(re.compile(r"%[1-9%]"), lambda _: 0),
    **dict.fromkeys(("qt", "qt-plural", "kde", "kde-kuit"), _QT),
}
# Of strings whose program is unknown. What may as well be a percentage, or a name, is left to the translator.
_UNKNOWN = ArgumentFormat(
    re.compile(
        rf"{_STRINGS_DICT}|"
        r"(?<![\d%])%(?:\([A-Za-z_]\w{0,60}\)|\d{1,2}\$)?[-+#0]?\d{0,3}(?:\.\d{1,2})?(?:hh|ll|[hlz])?"
        r"(?:@|[diouxXcsfFgGeEp](?![a-z]{3}))"
    ),
    _of_printf,
)


def format_of(flags: Collection[str]) -> ArgumentFormat:
    names = (flag.removesuffix("-format") for flag in flags if flag.endswith("-format"))
    return next((_BY_FLAG[name] for name in sorted(names) if name in _BY_FLAG), _UNKNOWN)


def in_order(kind: ArgumentFormat, source: Sequence[str], found: Sequence[int]) -> Sequence[str] | None:
    """Return the arguments of a translation, written so that each takes the same value as before; `None` if impossible.

    `found` are their places among the `source` arguments, in the order of the translation.
    """
    firsts: list[int] = []
    number = 0
    for argument in source:
        firsts.append(number)
        number += kind.takes(argument)
    taking = [place for place in found if kind.takes(source[place])]
    if taking == sorted(taking) and len(taking) == sum(1 for each in source if kind.takes(each)):
        return [source[place] for place in found]
    if kind.numbered is None:
        return None
    return [
        kind.numbered(source[place], firsts[place]) if kind.takes(source[place]) else source[place] for place in found
    ]
