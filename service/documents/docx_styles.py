"""The styles of a Word document, and which of its runs are code by them."""

from service.documents.archive import Archive
from service.documents.code_styles import CodeStyles, Style
from service.documents.xml_source import Element


def styles_of(archive: Archive, name: str, *, by_font: bool) -> CodeStyles:
    styles: dict[str, Style] = {}
    default: str | None = None  # the font of text without a style
    for element in archive.xml(name).elements(_wanted) if name else ():
        if element.name.endswith("docDefaults"):
            default = _font(element.at("rPrDefault", "rPr"))
            continue
        own = Style(_value(element, "name"), _value(element, "basedOn"), _font(element.at("rPr")))
        about = element.local
        styles[about.get("styleId", "")] = own
        if own.font is not None and about.get("type") == "paragraph" and about.get("default") in ("1", "true", "on"):
            default = own.font
    return CodeStyles(styles, default, by_font=by_font)


def is_code(styles: CodeStyles, run: Element) -> bool:
    paragraph = next((each for each in run.ancestors if each.name.rpartition(":")[2] == "p"), None)
    own = _properties(run)
    return styles.is_code(_font(own), (_value(own, "rStyle"), _value(_properties(paragraph), "pStyle")))


def _wanted(root: Element) -> tuple[str, ...]:
    prefix = root.name.removesuffix("styles")
    return f"{prefix}style", f"{prefix}docDefaults"


def _properties(element: Element | None) -> Element | None:
    first = next(element.elements, None) if element else None
    return first if first and first.name.endswith("Pr") else None


def _font(properties: Element | None) -> str | None:
    """Return the font of letters; empty if it is the theme's, and `None` if nothing is said of it."""
    fonts = properties.at("rFonts") if properties else None
    found = fonts.local if fonts else {}
    return "" if "asciiTheme" in found else found.get("ascii", found.get("hAnsi"))


def _value(element: Element | None, name: str) -> str:
    found = element.at(name) if element else None
    return found.local.get("val", "") if found else ""
