"""Values that are not texts: names, formats and other code, recognized by their form and their keys.

A single word is a text, unless its form is that of code, or its key is one for programs and the word is written like
theirs: in `"align": "left"`, but not in `"type": "Kind"` or `"type": "type"`.
"""

import re

_MAX_CHARACTERS = 2_000  # of a value or a key: longer ones are data, or texts
# A token of a date: one letter, as often as it takes, or several tokens that nothing separates: yyyyMMdd, ss.SSSZ.
_OF_DATE = (
    r"(?:(?P<letter>[yYMDdHhmsSEeaAkKzZXxQLwWG])(?P=letter)*+"
    r"|(?:yyyy|YYYY|MM|DD|dd|HH|hh|mm|ss|SSS|[DM]o|T(?=[Hh])|(?<=[sS])(?:Z|XXX))++)(?![A-Za-z])"
)
_QUOTED = r"(?:'[^']*+'|\[[^\]]*+\])"
_MIME = "(?:application|audio|chemical|font|image|message|model|multipart|text|video)"  # IANA's registry
_AREA = "(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Etc|Europe|Indian|Pacific)"  # IANA's tz database
_FORMS = re.compile(
    "|".join(
        (
            # Names of classes, icons, tags, keys: fa-home, mdi:home, actions/checkout@v4; but and/or, e-mail.
            r"(?![a-z][-.][a-z]+\Z)(?=[a-z\d/]+[-_:.@])[a-z][a-z\d]*+(?:(?:::|[-_:.@/])[a-z\d]++)++",
            r"[.#][a-z][\w-]*+",  # selectors and endings of files
            r"[a-z]{2,3}(?:[-_](?:[A-Z][a-z]{3}|[A-Z]{2}|\d{3})){1,2}",  # languages: en-US, zh_Hans_CN
            r"[A-Z][A-Z\d]*+(?:_[A-Z\d]++)++",  # constants
            rf"{_MIME}/(?!{_MIME}\Z)[\w.+*-]++(?:; ?\S*+)?",
            rf"{_AREA}(?:/(?!{_AREA}\Z)[A-Z][\w+-]*+)++",
            rf"(?=(?:{_QUOTED}|[^'\[])*?(?:yy|YY|MM|DD|dd|HH|hh|mm|ss))(?:{_OF_DATE}|{_QUOTED}|[\s\d.,:/_|()-])++",
            r"\d{4}-\d\d-\d\dT\S++",
            r"/?\^.*\$(?:/[a-z]*+)?",  # regular expressions
            r"(?=\S*(?:\\[dwsbDWSB](?![A-Za-z])|\][+*?{]|\)[+*?]|\(\?[:=!<]|\.[*+]))\S++",
            r"[a-z][a-z-]*+\((?=[^()]*\d)[^()]*+\)",  # CSS: rgb(0, 0, 0)
            r"[Mm] ?-?[\d.]+(?:[\s,]*+[AaCcHhLlMmQqSsTtVvZz]{0,2}[\s,]*+-?[\d.]+)++[Zz]?",  # paths of SVG
            "[kKMGTPE]i?(?:B|bit|Hz)",  # units: KB
            r"data:[^\s,]*+,\S*+|[A-Za-z\d+/]{11,}={1,2}",  # base64
        )
    )
)
_WORD = re.compile(r"[A-Z]?[a-z\d]+|[A-Z\d]+(?![a-z])")
_KEY = re.compile(
    "(?:id|value|enum|const|default|uuid|guid|key|slug|ref|rel|target|route|hash|version|code|tag|env|event|sort|dir"
    "|lang|language|locale|country|currency|timezone|tz|charset|encoding|mime|class|classe|classname|cls|css|style"
    "|icon|color|colour|align|alignment|position|placement|direction|layout|theme|variant|size|type|kind|mode|status"
    "|state|role|scope|method|component|template|format|fmt|mask|pattern|regex|regexp|selector|query|sql|cron|url|uri"
    "|href|src|path|file|filename|image|img|extension|shortcut|accelerator|mnemonic|keybinding)s?"
)
_WORD_OF_PROGRAM = re.compile(r"(?![A-Z][a-z])[!-~]++(?<![.:!?])")
# What may have white space: names of classes, and formats, such as PHP's "d M, Y", and patterns.
_LISTS = (
    (re.compile("class|classes|classnames?|cls|css|styles?|icons?"), re.compile(r"(?=.*[-:_\d])[a-z][!-@\[-~ ]++")),
    (
        re.compile("formats?|fmt|masks?|patterns?|regex|regexp|selectors?|query|sql|cron"),
        re.compile(r"(?=.*[\\^*+|\[\]])[ -~]++|(?:[^A-Za-z]*+[A-Za-z]{1,2}(?![A-Za-z]))++[^A-Za-z]*+"),
    ),
)


def is_code(key: str, value: str) -> bool:
    """Return whether a value is code; `key` is its own. A value equal to its key is a label, hence a text."""
    if len(value) > _MAX_CHARACTERS or key.endswith(value):
        return False
    if _FORMS.fullmatch(value):
        return True
    words = [word.lower() for word in _WORD.findall(key)] if " " not in key and len(key) <= _MAX_CHARACTERS else []
    names = ("".join(words[-2:]), *words[-1:])
    if value.lower() in words:
        return False
    if any(map(_KEY.fullmatch, names)) and _WORD_OF_PROGRAM.fullmatch(value):
        return True
    return any(form.fullmatch(value) for keys, form in _LISTS if any(map(keys.fullmatch, names)))
