"""Normal forms of Urdu's script, also for Kashmiri and Sindhi: Arabic presentation forms, diacritics, spaces.

From urduhack 1.1 (MIT) as indic-nlp-library uses it.
"""

import unicodedata

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

# Forms of letters that Unicode has for compatibility, and which letters Arabic's stand for.
_FORMS = (
    "ﭖﭘﭙﭦﭧﭨﭩﭺﭻﭼﭽﮈﮉﮋﮌﮍﮎﮏﮐﮑﮒﮓﮔﮕﮞﮟﮦﮧﮨﮩﮪﮫﮬﮭﮮﮯﯼﯽﯾﯿﺀﺁﺂﺃﺅﺋﺌﺍﺎﺏﺐﺑﺒﺕﺖﺗﺘﺚﺛﺜﺝﺞﺟﺠﺡﺢﺣﺤﺦﺧ"
    "ﺨﺩﺪﺫﺬﺭﺮﺯﺰﺱﺲﺳﺴﺵﺶﺷﺸﺹﺺﺻﺼﺽﺾﺿﻀﻃﻄﻅﻇﻈﻉﻊﻋﻌﻍﻏﻐﻑﻒﻓﻔﻕﻖﻗﻘﻝﻞﻟﻠﻡﻢﻣﻤﻥﻦﻧﻨﻭﻮﻻﻼ"
)
_LIKE = {"ک": "ﻛك", "ھ": "ﻬﻫ", "ہ": "ﻩﻪه", "ۃ": "ة", "ی": "ىﻰﻱﻲي", "ے": "ﻳﻴ"}
_TABLE = {form: unicodedata.normalize("NFKC", form) for form in _FORMS}
_TABLE |= {form: letter for letter, forms in _LIKE.items() for form in forms}
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
