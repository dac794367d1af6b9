"""Other spellings of numbers than digits: words of small numbers, names of months, Roman numerals.

Small tables of the most frequent languages; other languages write numbers in digits, or have them restored.
"""

import functools
import re

# For each language the numbers from 0 to 12: the beginnings of the words for them, of ordinals too. Regular
# expressions; a "$" is the end of a word.
_SMALL = {
    "en": "zero|no$ one$|first|once$|a$|an$|single two$|second|twice$|both$|double three|third|triple four "
    "five|fifth six seven eight nine|ninth ten$|tenth|tens$ eleven twelve|twelfth|dozen",
    "de": "null|kein ein(e[mnrs]?|s|mal)?$|erst zwei|beid|zweit|doppel drei|dritt vier fünf|fuenf sech "
    "siebe|siebt|siebz$ acht neun zehn elf zwölf|zwoelf|dutzend",
    "fr": "zéro|aucun une?$|premi deux|second trois quatr cinq six sept huit neuf|neuv dix onz douz",
    "es": "cero|ningun un[oa]?$|primer dos$|segund|ambos|doble tres$|tercer|triple cuatro|cuart cinco|quint "
    "seis|sext siete|séptim ocho|octav nueve|noven diez|décim once doce|docena",
    "pt": "zero|nenhum uma?$|primeir dois$|duas$|segund|ambos|dobro três|terceir quatro|quart cinco|quint "
    "seis|sext sete|sétim oito|oitav nove|non dez|décim onze doze|dúzia",
    "it": "zero|nessun un[oa]?$|un’|prim due$|second|entramb|doppi tre$|terz quattro|quart cinque|quint sei$|sest "
    "sette|settim otto|ottav nove|non[oa] dieci|decim undici|undices dodici|dodices",
    "nl": "nul|geen een$|één|eerst twee|beide|dubbel drie|derd vier vijf zes zeven acht negen tien elf "
    "twaalf|dozijn",
    "sv": "noll|ingen en$|ett$|först två|andra|båda tre fyra|fjärd fem sex|sjätt sju åtta|åttond nio tio elva|elft "
    "tolv|dussin",
    "da": "nul|ingen en$|et$|først to$|anden|andet|begge tre fire|fjerde fem seks|sjette syv ot|ottende ni "
    "ti$|tiende elle tolv",
    "nb": "null|ingen en$|ett?$|først to$|andre|begge tre fire|fjerde fem seks|sjette sju|syv åtte|åttend ni "
    "ti$|tiend ell tolv",
    "fi": "nolla yksi|yhde|ensim kaksi|kahde|toi kolm neljä|neljän viisi|viide kuusi|kuude seitsem kahdeks yhdeks "
    "kymmen yksitoist kaksitoist",
    "pl": "zero jed|pierw dw|drug|ob[ay] trz|trzec czter|czwar pięć|pięci|piąt sześ|szóst sied|siód osiem|ośm|ósm "
    "dziewi dziesi jedena dwuna|dwana|tuzin",
    "cs": "nul|žádn jed|prv dv|druh|ob[aě] tř|třet čtyř|čtvr pět|pát šest sedm osm dev desít|desát|deset jedená "
    "dvaná|tucet",
    "ru": "ноль|нул од(ин|на|но|ни)|перв дв|втор|об[ае] тр(и|ё|е|ет) четыр|четвёр|четвер пят шест сем|седьм вос "
    "девят десят одинна двена|дюжин",
    "uk": "нуль од(ин|на|не|ні)|перш дв|друг|обид тр(и|ьо|ет) чотир|четвер п.?ят шіст|шест сім|сьом вісім|восьм "
    "дев десят одина двана|дюжин",
    "tr": "sıfır bir|ilk iki üç dört beş altı yedi sekiz dokuz on$|onun onbir|onb oniki|düzine",
    "hi": "शून्य एक|पहल|प्रथम दो$|दोनों|दूसर|दोबारा तीन|तीसर चार|चौथ|चारों पां|पाँ|पांचव छह|छः|छठ|छे सात आठ नौ दस "
    "ग्यारह बारह|दर्जन",
    "zh": "零|〇 一 二|两|兩|双|雙 三 四 五 六 七 八 九 十 十一 十二|打",
    "ja": "零|〇|ゼロ 一|ひと 二|ふた|両 三|みっ 四|よっ 五|いつ 六|むっ 七|なな 八|やっ 九|ここの 十|とお 十一 "
    "十二",
    "ko": "영$|공 한|하나|일|첫 두|둘|이|양 세|셋|삼 네|넷|사 다섯|오 여섯|육 일곱|칠 여덟|팔 아홉|구 열|십 "
    "열한|십일 열두|십이",
    "ar": "صفر واحد|أول|الأول اثن|ثان|الثان|كلا ثلاث|ثالث أربع|رابع خمس|خامس ست|سادس سبع|سابع ثما|ثامن تسع|تاسع "
    "عشر|عاشر أحد.عشر اثن.{0,2}.عشر|دزينة",
}  # fmt: skip

# The beginnings of months' names, from January to December.
_MONTHS = {
    "en": "jan feb mar apr may jun jul aug sep oct nov dec",
    "de": "jan|jän feb mär|mrz apr mai jun jul aug sep okt nov dez",
    "fr": "janv févr|fev mars avr mai juin juil août|aout sept oct nov déc",
    "es": "ene feb mar abr may jun jul ago sep|set oct nov dic",
    "pt": "jan fev mar abr mai jun jul ago set out nov dez",
    "it": "gen feb mar apr mag giu lug ago set ott nov dic",
    "nl": "jan feb maa|mrt apr mei jun jul aug sep okt nov dec",
    "sv": "jan feb mar apr maj jun jul aug sep okt nov dec",
    "da": "jan feb mar apr maj jun jul aug sep okt nov dec",
    "nb": "jan feb mar apr mai jun jul aug sep okt nov des",
    "fi": "tammi helmi maalis huhti touko kesä heinä elo syys loka marras joulu",
    "pl": "sty lut mar kwie maj czerw lip sier wrze paź lis gru",
    "cs": "led únor březen|březn dub květ červn|červen červenc|července srp září říj listop prosin",
    "ru": "янв фев мар апр ма[яй] июн июл авг сен окт ноя дек",
    "uk": "січ лют берез квіт трав черв лип серп верес жовт листоп груд",
    "tr": "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
    "hi": "जन फर|फ़र मार्च अप्रैल मई जून जुल अग सित अक्तू|अक्टू नव दिस",
}

# The beginnings, or ends after "-", of words for further numbers and for what is often written as one.
_LARGE = {
    "en": "thirt -teen twent fort fift sixt seventy|seventie eighty|eightie ninet hundred|thousand milli billi "
    "trilli dozen score half|halve quarter centur decade noon midnight",
    "de": "-zehn -zehnte -zehnten -zehnter zwanz -zig -ßig hundert -hundert tausend -tausend milli dutzend halb "
    "viertel jahrhundert jahrzehnt mittag mitternacht",
}  # fmt: skip
# Words for parts of an hour.
_HOURS = {
    "en": "half|quarter|past",
    "de": "halb|viertel|dreiviertel",
    "fr": "demie?|quart|midi|minuit",
    "es": "media|cuarto|mediodía|medianoche",
    "pt": "meia|quarto|meio-dia",
    "it": "mezz|quarto",
    "nl": "half|kwart",
    "sv": "halv|kvart",
    "da": "halv|kvart",
    "nb": "halv|kvart",
    "pl": "wpół|kwadrans",
    "cs": "půl|čtvrt",
    "ru": "пол|четверть",
    "hi": "आध|साढ़े|सवा|पौने|डेढ़|ढाई",
}
for _table in (_SMALL, _MONTHS, _HOURS):
    _table["no"] = _table["nb"]  # the macrolanguage
_UNSPACED = frozenset({"zh", "ja", "ko"})  # words of these need no boundary before them
_PARTS_OF_ROMAN = ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))
_MOST_ROMAN = 39


def count_written(value: int, text: str, language: str) -> int:
    """Return how often a text of a language (its primary subtag) may have a number as a word or in Roman numerals."""
    pattern = _nth(_SMALL.get(language, ""), value, language)
    return (0 if pattern is None else sum(1 for _ in pattern.finditer(text))) + _num_roman(value, text)


def names_month(number: int, text: str, language: str) -> bool:
    pattern = _nth(_MONTHS.get(language, ""), number - 1, language)
    return pattern is not None and pattern.search(text) is not None


def names_hour(hour: int, text: str, language: str) -> bool:
    """Return whether a text of a language may tell a time of this hour in words: half past it, or half of the next."""
    words = _HOURS.get(language)
    if words is None or _beginnings(words, language).search(text) is None:
        return False
    return any(count_written((each - 1) % 12 + 1, text, language) for each in (hour, hour + 1))


def spells_numbers(text: str, language: str) -> bool:
    """Return whether a text may have a number of two digits in words; always true for languages without a table."""
    pattern = _large(language)
    return pattern is None or pattern.search(text) is not None


def _num_roman(value: int, text: str) -> int:
    if not 1 < value <= _MOST_ROMAN:
        return 0
    left, roman = value, ""
    for worth, sign in _PARTS_OF_ROMAN:
        roman += sign * (left // worth)
        left %= worth
    return len(re.findall(rf"(?<!\w){roman}(?![A-Z])(?=\W|$|[a-zºª])", text))


@functools.cache
def _nth(table: str, index: int, language: str) -> re.Pattern[str] | None:
    words = table.split()
    return _beginnings(words[index], language) if 0 <= index < len(words) else None


@functools.cache
def _large(language: str) -> re.Pattern[str] | None:
    words = _LARGE.get(language, "").split()
    if not words:
        return None
    ends = "|".join(word[1:] for word in words if word.startswith("-"))
    begins = "|".join(word for word in words if not word.startswith("-"))
    return re.compile(rf"(?<!\w)(?:{begins})|(?:{ends})(?!\w)", re.IGNORECASE)


def _beginnings(words: str, language: str) -> re.Pattern[str]:
    before = "" if language in _UNSPACED else r"(?<!\w)"
    words = words.replace("$", r"(?!\w)")
    return re.compile(f"{before}(?:{words})", re.IGNORECASE)
