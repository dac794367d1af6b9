"""Words with a meaning to one reader or another: a fuzzer combines them faster than it finds them."""

from tests.nasty_texts import SPECIAL_LOOK_ALIKES

WORDS = (
    *SPECIAL_LOOK_ALIKES,
    *("<b>", "</b>", "<code>", "</code>", "<p>", "</p>", "<br>", "<a href=x>", "</a>", "<!--", "-->"),
    *("<![CDATA[", "]]>"),
    *("<svg/>", "<script>", "</script>", "<textarea>", "<title>", "<plaintext>", "<img>", "&amp;", "&#x41;", "&nbsp"),
    *(' translate="no"', ' class="notranslate"', "<span>", "</span>", "<pre>", "<template>", "<math>", "/>", "='"),
    *("{{name}}", "{0}", "${x}", "{% if %}", "%s", "%1$s", "%(n)s", "%%", ":tada:", "https://a.b/c", "a@b.de", "{}"),
    *("1. ", "- ", "* ", "a) ", "Dr. ", "z. B. ", "? ", "! ", "\u201e", "\u201c", "\u3002", "\u0964", "\r\n"),
    *("\u2028", "\f"),
    *("\u0301", "\u200d", "\u094d", "\U0001f1e9\U0001f1ea", "\U0001f3fb", "\ue000", "\ue001", "\u00a0", "\u0e01"),
    *("\u6c34",),
    *("Where is", "Save the file.", "Hello", "train station", "Bahnhof", "en", "de", "eng_Latn", "zh-Hant-TW", "x-y"),
    *("[keys.a]", "sha256 = ", "expires = ", "2030-01-31T00:00:00Z", "requests_per_minute = ", "port = ", "models = "),
    *('{"text": ', '"}', "\\ud800", "[[", "]]", "true", "null", "1e999", "NaN", "0x", "\t", "case", "#", '"""'),
    *("GET / HTTP/1.1\r\n", "POST /api/translate HTTP/1.1\r\n", "Host: localhost\r\n", "Content-Length: ", "\r\n\r\n"),
    *("Origin: http://localhost\r\n", "localhost", "status.example", "http://[", "[::1]:9465", "Bearer "),
    *("Transfer-Encoding: ",),
    *("projects/p/locations/l/glossaries/g", "/glossaryEntries/1", "models/general/nmt", "dns:///", "ipv4:"),
    *("10.0.0.1:50051",),
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
)
