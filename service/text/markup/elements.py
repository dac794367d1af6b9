"""Names of HTML's elements, by their effect on the text around and in them."""

VOID = frozenset(
    {
        *("area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen"),
        *("link", "meta", "param", "source", "track", "wbr"),
    }
)
"""Elements without content and end tag."""

MARKS = frozenset({"area", "embed", "img", "input", "wbr"})
"""Elements without text that may stand within a sentence."""

OPAQUE_MARKS = frozenset({"audio", "canvas", "iframe", "math", "object", "picture", "svg", "video"})
"""Elements that may stand within a sentence and whose content is left alone."""

PROTECTED = frozenset({"code", "kbd", "notranslate", "samp", "tt", "var"})
"""Elements whose text is part of a sentence and must come back as it is."""

PROTECTED_CLASSES = frozenset(
    {
        *(("span", "command"), ("span", "citerefentry")),  # DocBook's
        *(("strong", "command"), ("strong", "program"), ("em", "manpage"), ("a", "manpage")),  # Sphinx's
    }
)
"""Elements with a class that are protected, too: names of programs."""

READINGS = frozenset({"rp", "rt", "rtc"})
"""Elements beside a word that give its pronunciation; they are no part of the sentence."""

UNNESTABLE = frozenset({"a", "nobr"})
"""Inline elements that end where another of their kind starts."""

OPAQUE_BLOCKS = frozenset({"listing", "noscript", "pre", "template"})
"""Elements between sentences whose content is left alone."""

BLOCKS = (
    OPAQUE_BLOCKS
    | (VOID - MARKS - {"br"})
    | {
        *("address", "applet", "article", "aside", "blockquote", "body", "button", "caption", "center", "colgroup"),
        *("datalist", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure"),
        *("footer", "form", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hgroup", "html"),
        *("image", "isindex", "legend", "li", "main", "marquee", "menu", "menuitem", "nav", "noembed", "noframes"),
        *("ol", "optgroup", "option", "p", "plaintext", "script", "search", "section"),
        *("select", "style", "summary", "table", "tbody", "td", "textarea", "tfoot", "th", "thead", "title", "tr"),
        *("ul", "xmp"),
    }
)
"""Elements at whose tags a sentence ends. All that are in none of these sets are inline, as in browsers."""
