"""Normal forms of Urdu's script, also for Kashmiri and Sindhi: Arabic presentation forms, diacritics, spaces.

From urduhack 1.1 (MIT) as indic-nlp-library uses it.
"""

from service.text.indic.normalization import QUOTES
from service.text.indic.rewriting import Rule, letters
from service.text.indic.words import ASCII_MARKS

_PUNCTUATION = "؛،٫؟۔٪"
_DIACRITICS = "\u064e\u064b\u0670\u0650\u064f\u064d"
_OTHERS = "\u0600-\u0603\u060d-\u0615\u064c\u0651-\u0654\u0656-\u0658\u066c"
_LETTERS = "آأابپتٹثجچحخدڈذرڑزژسشصضطظعغفقکگلمنںوؤہۂۃھءیئےۓ"
_DIGITS = "۰-۹"
_ALL = f"{_LETTERS}{_DIGITS}{_PUNCTUATION}{_DIACRITICS}{_OTHERS}"
_ALL_BUT_HAMZA = _ALL.replace("ء", "")
_ALL_PUNCTUATION = _PUNCTUATION + ASCII_MARKS

# Each letter, and the forms of it that Unicode has for compatibility, or Arabic's letters that look like it.
_FORMS = """
آ ﺁﺂ
أ ﺃ
ا ﺍﺎ
ب ﺏﺐﺑﺒ
پ ﭖﭘﭙ
ت ﺕﺖﺗﺘ
ٹ ﭦﭧﭨﭩ
ث ﺛﺜﺚ
ج ﺝﺞﺟﺠ
ح ﺡﺣﺤﺢ
خ ﺧﺨﺦ
د ﺩﺪ
ذ ﺬﺫ
ر ﺭﺮ
ز ﺯﺰ
س ﺱﺲﺳﺴ
ش ﺵﺶﺷﺸ
ص ﺹﺺﺻﺼ
ض ﺽﺾﺿﻀ
ط ﻃﻄ
ظ ﻅﻇﻈ
ع ﻉﻊﻋﻌ
غ ﻍﻏﻐ
ف ﻑﻒﻓﻔ
ق ﻕﻖﻗﻘ
ل ﻝﻞﻟﻠ
م ﻡﻢﻣﻤ
ن ﻥﻦﻧﻨ
چ ﭺﭻﭼﭽ
ڈ ﮈﮉ
ڑ ﮍﮌ
ژ ﮋ
ک ﮎﮏﮐﮑﻛك
گ ﮒﮓﮔﮕ
ں ﮞﮟ
و ﻮﻭ
ؤ ﺅ
ھ ﮪﮬﮭﻬﻫﮫ
ہ ﻩﮦﻪﮧﮩﮨه
ۃ ة
ء ﺀ
ی ﯼىﯽﻰﻱﻲﯾﯿي
ئ ﺋﺌ
ے ﮮﮯﻳﻴ
لا ﻻﻼ
"""
_TABLE = {form: letter for letter, forms in map(str.split, _FORMS.split("\n")[1:-1]) for form in forms}
_TABLE |= {chr(0x660 + digit): chr(0x6F0 + digit) for digit in range(10)}
_TABLE["\N{ARABIC TATWEEL}"] = ""

URDU: tuple[Rule, ...] = (
    *QUOTES,
    Rule(f"[{_DIACRITICS}]", ""),
    letters(_TABLE),
    letters({"\u0627\u0653": "آ", "\u0627\u0654": "أ", "\u06d2\u0654": "ۓ"}),
    Rule(f"(?<=[{_ALL}])(?=[0-9])", " "),
    Rule(f"(?<=[0-9])(?=[{_ALL_BUT_HAMZA}])", " "),
    Rule(f"(?<=[{_ALL}])(?=[{_ALL_PUNCTUATION}])", " "),
    Rule(f"(?<=[{_ALL_PUNCTUATION}])(?=[^{_ALL_PUNCTUATION}0-9 \\n])", " "),
    Rule(f"(?<=[{_ALL}])(?=[a-zA-Z])", " "),
    Rule(f"(?<=[a-zA-Z])(?=[{_ALL}])", " "),
)
