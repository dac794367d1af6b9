"""Texts that break tokenizers, and a hypothesis strategy that generates more of them."""

import unicodedata

from hypothesis import strategies as st

SPECIAL_LOOK_ALIKES = (
    "</s>",
    "<s>",
    "<pad>",
    "<unk>",
    "<mask>",
    "<eop>",
    "[UNK]",
    "[PAD]",
    "__en__",
    "__de__",
    "__xx__",
    ">>de<<",
    ">>fr<<",
    ">>xx<<",
    ">><<",
    "eng_Latn",
    "deu_Latn",
    "xxx_Latn",
    "▁",
    "\ue000",
)

_LOOK_ALIKES_IN_PLACE = tuple(
    text
    for token in SPECIAL_LOOK_ALIKES
    for text in (
        token,
        f"{token} Hello",
        f"{token}Hello",
        f" {token} Hello",
        f"Hello{token}",
        f"Hello {token} my {token}keys{token}{token}.",
        f"{token}>>de<< Save the file.",
        f"Save {token} >>fr<<the file.",
        f"\t{token}\n{token}  ",
        token[:-1],
        token[1:],
        token.upper(),
    )
)

_DECOMPOSED = "Das schöne Café: Ångström, ﬁnally Ｆｕｌｌ－ｗｉｄｔｈ １２３ ﾊﾝｶｸ ① ² ½ ℃ ㎏"

NASTY_TEXTS = (
    "",
    " ",
    "   \t\n ",
    "\u00a0\u2003\u3000",
    "Hello, can you help me find my keys?",
    "  leading and trailing  ",
    "many    spaces\t\tand\ttabs\nand\r\nlines\n\n\n",
    "no-break\u00a0space, thin\u2009space, ideographic\u3000space, zero\u200bwidth\u200bspace, word\u2060joiner",
    "\x00",
    "NUL\x00 BEL\x07 ESC\x1b[31m BS\x08 DEL\x7f VT\x0b FF\x0c US\x1f",
    "NEL\u0085 LS\u2028 PS\u2029 BOM\ufeff SHY so\u00adft CSI\u009b",
    "\ufeffHello",
    "😀 🙂🙃 👍🏽 ❤\ufe0f ☺\ufe0e 1\ufe0f⃣ 🇩🇪🇫🇷",
    "👨\u200d👩\u200d👧\u200d👦 👩🏽\u200d🚀 🏳\ufe0f\u200d🌈",
    "flags 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "العَرَبِيَّة \u200fRTL\u200e ע\u05b4ב\u05b0ר\u05b4ית \u202eoverride\u202c \u2067isolate\u2069",
    "हिन्दी में क\u094dष और क\u094d\u200dष और क\u094d\u200cष",
    "中文字符，没有空格。日本語のテキスト。한국어 텍스트 ㄱㅏ 각",
    "Где находится вокзал? Ёлка, ЁЛКА",
    unicodedata.normalize("NFC", _DECOMPOSED),
    unicodedata.normalize("NFD", _DECOMPOSED),
    unicodedata.normalize("NFKC", _DECOMPOSED),
    "z̷̢a͠l̸g̡o͜ a" + "\u0301" * 50,
    "𓂀𓃰 𐎠𐎡 ꙮ ᚠᚢᚦ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 \U0001f9ff \U000e0041",
    "\ue000\ue001 \uf8ff \U000f0000 \U0010fffd \ufffd \ufffe \uffff",
    "“Double” ‘single’ „low“ «guillemets» ‹single› ´acute` ''two'' ``back`` 5′ 6″",
    "em—dash en–dash minus−hyphen‐figure‒bar― soft\u00adhyphen ... … ‥ ..... ?! ‽",
    "1,234.56 1.234,56 1 234 ٣٤٥ ३४५ １２３ 0x1F 1e-9 10^6 50% §3 №5",
    "The cat 's mat , is n't it ? I 've seen ' em . We 're done ! I 'm",
    "<", ">", "<<", ">>", "&lt;b&gt; <b>bold</b> <br/> a < b > c", "</", "s>", "<pa", "__", "_ _e n_ _",
    "▁▁ ▁Hello▁ _Hello_",
    "http://example.org/a?b=c&d=%20#e user@example.org C:\\path\\file {json: [1, 2]} $x^2$ #tag @name",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "Hello world. " * 770,
    "x" * 10_000,
    "é🙂" * 5_000,
    "_" * 10_000,
    "<" * 10_000,
    " " * 10_000,
    "</s>" * 500,
    *_LOOK_ALIKES_IN_PLACE,
)  # fmt: skip


def nasty_text() -> st.SearchStrategy[str]:
    """Generate any text, often with special tokens, language codes and known words in it."""
    known = st.sampled_from((*SPECIAL_LOOK_ALIKES, "Hello", "Wo ist", "▁", " ", "  ", "\n", "<", ">>", "<<", "_"))
    return st.lists(st.one_of(known, st.text(max_size=8)), max_size=8).map("".join)
