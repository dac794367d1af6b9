"""Identifiers and amounts are found, ordinary words with the same signs are not."""

import time
from itertools import pairwise

import pytest

from service.text.exact import find_amounts, find_identifiers, may_have_exact
from service.text.numbers import Languages
from tests.patience import patient

FOUND = [
    ("Set user_name to root.", ["user_name"]),
    ("MAX_VALUE, _private and __init__", ["MAX_VALUE", "_private", "__init__"]),
    ("Call getElementById() or os.path.join().", ["getElementById()", "os.path.join()"]),
    ("Use std::vector, System.Text.Json and userID", ["std::vector", "System.Text.Json", "userID"]),
    ("The file /etc/passwd is open.", ["/etc/passwd"]),
    ("See ~/x/, ./run.sh, (/usr/local/bin).", ["~/x/", "./run.sh", "/usr/local/bin"]),
    (r"Open C:\Program Files\My App\app.exe now or hunter2", [r"C:\Program Files\My App\app.exe", "hunter2"]),
    (r"Open C:\Users\x\a.txt or \\server\share\x.", [r"C:\Users\x\a.txt", r"\\server\share\x"]),
    ("Open src/main.c, README.md and x.tar.gz.", ["src/main.c", "README.md", "x.tar.gz"]),
    ("See CVE-2021-44228, ISO-8859-1, INV/2024/0012.", ["CVE-2021-44228", "ISO-8859-1", "INV/2024/0012"]),
    ("AB123456, ISO9001 and DE-10115", ["AB123456", "ISO9001", "DE-10115"]),
    ("Connect to 225.57.128.27, 10.0.0.0/8 or 10.0.0.1:80.", ["225.57.128.27", "10.0.0.0/8", "10.0.0.1:80"]),
    ("fe80::1%eth0, ::1, 2001:db8::/32", ["fe80::1%eth0", "::1", "2001:db8::/32"]),
    ("2001:0db8:85a3:0000:0000:8a2e:0370:7334 is it", ["2001:0db8:85a3:0000:0000:8a2e:0370:7334"]),
    ("550e8400-e29b-41d4-a716-446655440000", ["550e8400-e29b-41d4-a716-446655440000"]),
    ("00:1B:44:11:3A:B7, 0xDEADBEEF, 9fceb02", ["00:1B:44:11:3A:B7", "0xDEADBEEF", "9fceb02"]),
    ("to DE89 3704 0044 0532 0130 00 please", ["DE89 3704 0044 0532 0130 00"]),
    ("@anna likes #berlin", ["@anna", "#berlin"]),
    ("Use --no-cache here", ["--no-cache"]),
    ("Use -v, -rf or --output=a.txt (-h for help)", ["-v", "-rf", "--output=a.txt", "-h"]),
    ("-h, --help or -j4 and -Xmx512m, docker run -it", ["-h", "--help", "-j4", "-Xmx512m", "-it"]),
    (
        "localhost:8080, nginx:latest, pip==1.2.3, key=value.",
        ["localhost:8080", "nginx:latest", "pip==1.2.3", "key=value"],
    ),
    ("Add **/*.js, not *.txt; about 10^6 or 10⁻⁹ of H₂O, mc²", ["**/*.js", "*.txt", "10^6", "10⁻⁹", "H₂O", "mc²"]),
    ("版本2.3.4发布，打开user_name和/etc/passwd。", ["2.3.4", "user_name", "/etc/passwd"]),
    ("user_name을 여세요, größe_max, #übung", ["user_name", "größe_max", "#übung"]),
    ("UTF-8 and MyClass.method", ["UTF-8", "MyClass.method"]),
    ("On 2026-12-24 at 2026-12-24T10:00:00Z", ["2026-12-24", "2026-12-24T10:00:00Z"]),
    ("version 2.5, v1.2, 12.5.3, 1.2.3-rc1, 0.5.10.", ["2.5", "v1.2", "12.5.3", "1.2.3-rc1", "0.5.10"]),
    ("Call +49 30 1234567, (030) 123-4567 or 030 1234567.", ["+49 30 1234567", "(030) 123-4567", "030 1234567"]),
    ("config.log.value, ISBN 978-3-16-148410-X, 5/13/2019", ["config.log.value", "978-3-16-148410-X", "5/13/2019"]),
    (
        "📅 2025-03-04 ⏳2025-03-01 📞 +49 30 1234567 → 1.2.3",
        ["📅 2025-03-04", "⏳2025-03-01", "📞 +49 30 1234567", "1.2.3"],
    ),
    ("Step ② is after①, ❸ and ㉑", ["②", "①", "❸", "㉑"]),
    ("AT&T's Q&As, 1&1, A&amp;B; H&M-Filiale", ["AT&T", "Q&As", "1&1", "A&amp;B", "H&M"]),
    ("Article 6 (1) (f), not 3 (a), of 3(2A)(b), /a/5 kg, /a/5kg/b.c", ["6 (1) (f)", "3(2A)(b)", "/a/5", "/a/5kg/b.c"]),
    ("R & D, Johnson & Johnson, Smith & Sons", ["R & D", "Johnson & Johnson", "Smith & Sons"]),
    ("Use open(\"a.txt\").read(), load('x') or f(x)", ['open("a.txt").read()', "load('x')", "f(x)"]),
    (
        "Use max(a, b), int(input(“Age: ”)), sleep(5), foo(a=1)",
        ["max(a, b)", "int(input(“Age: ”))", "sleep(5)", "foo(a=1)"],
    ),
    ("os.path.join(root, name), =IF(A1>5,'a b','c')", ["os.path.join(root, name)", "IF(A1>5,'a b','c')"]),
    (
        'console.log("Hello you"), userID(a), args[0], d["a b"]',
        ['console.log("Hello you")', "userID(a)", "args[0]", 'd["a b"]'],
    ),
    ("Press Ctrl+Shift+P, Ctrl-C, Alt + F4, ⌘S or ⌥+⇧+a.", ["Ctrl+Shift+P", "Ctrl-C", "Alt + F4", "⌘S", "⌥+⇧+a"]),
    (
        "shift-enter, Ctrl/Cmd+K, Strg+Entf, Ctrl+click, Ctrl++",
        ["shift-enter", "Ctrl/Cmd+K", "Strg+Entf", "Ctrl+click", "Ctrl++"],
    ),
    (
        "See 4.2(a)(iii), 6(1)(f)-(h), 10b-5(c), II(3) and (b)(ii).",
        ["4.2(a)(iii)", "6(1)(f)-(h)", "10b-5(c)", "II(3)", "(b)(ii)"],
    ),
    ("Use len(items), if (a == b), x != y and >= maxLength", ["len(items)", "if (a == b)", "x != y", ">= maxLength"]),
    ("for (i = 0; i < n; i++), a && b || !c, x += 1", ["for (i = 0; i < n; i++)", "a && b || !c", "x += 1"]),
    ("See apt-get(8), sources.list(5) or java.util.List.", ["apt-get(8)", "sources.list(5)", "java.util.List"]),
    ("Call 555-1234, +1 (276) 387-8516, 0171/1234567", ["555-1234", "+1 (276) 387-8516", "0171/1234567"]),
]

WORDS = [
    "and/or, he/she, km/h, 24/7, TCP/IP, +/-, w/o, 1/2",
    "e.g. this, i.e. that, U.S.A., z.B. so, at 3 p.m.",
    "It is the end.The next one.Begins.",
    "iPhone, YouTube, McDonald's, GmbH, eBay",
    "F-16, A4, H2O, B2B, MP3, 4th, 1990s, 500km, 3D",
    "at 10:30:15 or 10:30, 100 % of #1, C#, C++",
    "well-known -- as ever - words",
    "-Hello. -I am. He said -I am, -Peter. Vor- und -nachher, Note:10, x = y, Haus¹",
    "price >= 5, == Title ==, if (and only if), print(er), sin(s)",
    "file(s), ein(e), Lehrer(in), Rome(Italy), A(n), code(IBAN), note[1], use(see this, please), key(it's), 10(ten)",
    "Save & Close, x&Y, A&, Fish &amp; Chips, &A, Law & Order, Terms & Conditions",
    "a win-win, command-line, Control-flow, Shift + hard work, Option + Tax, (a) or (iii)",
    "About 10,000 or 1.5 or $5 or 2017-18 or 1.234.567 or 24.12.2026 or 10 000",
]


@pytest.mark.parametrize(("text", "expected"), FOUND)
def test_identifiers(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in find_identifiers(text)] == expected
    assert may_have_exact(text)


def test_words_are_none_and_plain_sentences_need_no_search() -> None:
    assert [text for text in WORDS if find_identifiers(text)] == []
    assert not may_have_exact("Don't go-there: it's well-known, isn't it? (Yes.)")


GERMAN = Languages("en", "de")

NONE = [
    "At 9 I am here, am I? 5 am I, 3 in the morning, 2017 in May",
    "the 1990s, 747s, v1.2 GB2, 10.0.0.1:80, A4, 4x4, 5'3",
    "$5, €9, 20 dollars, 12 %, 2 bar stools, 3 Pts, ISO 9001",
]
AMOUNTS = [
    *((text, "") for text in NONE),
    ("It weighs 5 kg, not 5g or 2.5 lb.", "5 kg|5g|2,5 lb"),
    ("Add 1,500 ml at -10 °C or 180°C for 20 min.", "1.500 ml|-10 °C|180°C|20 min"),
    ("100 km/h, 50 mg/dl, 6 l/100 km, 75 m², 25 Mbit/s", "100 km/h|50 mg/dl|6 l/100 km|75 m²|25 Mbit/s"),
    ("2-8 °C, 120 x 80 cm, a 5-kg bag, 1/2 kg, 3e-5 mol", "2-8 °C|120 x 80 cm|5-kg|1/2 kg|3e-5 mol"),
    ("USD 20, 1,250.00 EUR, $50,000 USD and 3 million CHF", "USD 20|1.250,00 EUR|$50.000 USD|CHF"),
    ("$1.5bn, €40k, £2m, $80K-$100K", "$1,5bn|€40k|£2m|$80K|$100K"),
    ("from 9 am to 5 p.m., at 12:05 AM or 12 pm.", "9:00|17:00|0:05|12:00"),
    ("9-5 pm, 6.30-10am, 11am–1pm, 13 pm, 9:75 am", "9:00–17:00|6:30–10:00|11:00–13:00|13 pm|9:75 am"),
    ("At 10:15 p.m. we eat, till 10:15 p.m.", "22:15|22:15"),
    ("⭐ 4.5 stars, 💰 $1,250.50, ⏰ 9 a.m., ⏱️10:30, ✓ 5 kg, → 5", "⭐ 4,5|💰 $1.250,50|⏰ 9:00|⏱️10:30|✓ 5 kg"),
    ("10 000 km and 0.5\u00a0l", "10 000 km|0,5\u00a0l"),
]


@pytest.mark.parametrize(("text", "expected"), AMOUNTS)
def test_amounts(text: str, expected: str) -> None:
    found = find_amounts(text, GERMAN)
    assert "|".join(target for _, _, target in found) == expected
    assert all(end <= start for (_, end, _), (start, _, _) in pairwise(found))


@pytest.mark.parametrize(
    ("text", "languages", "expected"),
    [
        ("Kapitel 9 am Ende, 2.5 kg", Languages("de", "en"), ["2.5 kg"]),
        ("at 3:30 pm, 2.5 kg", Languages("en", "hi"), ["2.5 kg"]),
        ("En 2010 ha ganado 1.500,5 kg", Languages("es", "en"), ["1,500.5 kg"]),
        ("2,5 kg", Languages("xx", "de"), ["2,5 kg"]),
    ],
)
def test_languages(text: str, languages: Languages, expected: list[str]) -> None:
    assert [target for _, _, target in find_amounts(text, languages)] == expected


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("6 a.m.", ""),
        ("from 9 a.m. to 5 p.m.", "from  to "),
        ("Open: 9 a.m. – 5 p.m.", "Open: "),
        ("Lunch\t1 p.m.\nDinner\t6 p.m. \n", "Lunch\t\nDinner\t \n"),
        ("It closes at 5 p.m.", "It closes at ."),
        ("It opens: we come at 9 a.m.", "It opens: we come at ."),
    ],
)
def test_the_stop_of_a_time_is_its_own_where_no_sentence_ends(text: str, rest: str) -> None:
    for start, end, _ in reversed(find_amounts(text, GERMAN)):
        text = text[:start] + text[end:]
    assert text == rest


HOSTILE_IDENTIFIERS = (
    *("a_", "a.", "/", "/a", "a/", "1.", "A-", "A-1", "::", "a::", "@", "0x", "-", "\\", "aA", "_", "1:"),
    *(" -a", "a=", "a:1", "*.", "1,", "A₂", "--a=", "f('", "f(a, ", "f(", "a['", "(a)", "1(a", "Ctrl+", "Alt-", "⌘"),
    *("📅 ", "②", "a==", "a == b ", "if (", "for (;", "a-", "a-b(1", ">= a", "&&"),
)
HOSTILE_AMOUNTS = (
    *("1", "1 ", "1,", "1 000 ", "1-", "1 x ", "-", "USD ", "$1", "1:30 ", "1 am-", "1 k", "1/1"),
    *("📅 1", "to 9 a.m. ", "9 p.m.\n"),
)


@pytest.mark.parametrize("part", sorted({*HOSTILE_IDENTIFIERS, *HOSTILE_AMOUNTS}))
def test_hostile_texts_take_linear_time(part: str) -> None:
    text = (part * 10_000)[:10_000]
    began = time.process_time()
    find_identifiers(text)
    find_amounts(text, GERMAN)
    assert time.process_time() - began < patient(0.25)
