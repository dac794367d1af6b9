"""Values of keys: which are code, and which are texts; each table has values by their key."""

import pytest

from service.documents.code_values import is_code

CODE = {
    "k": (
        *(
            "fa-home",
            "mdi:home",
            "user_name",
            "align-items-center",
            "org.example.app",
            "actions/checkout@v4",
            "std::map",
        ),
        *("MAX_SIZE", ".btn", "#main", ".pdf", "en-US", "de_AT", "zh_Hans_CN", "es-419"),
        *("text/html", "image/*", "image/svg+xml", "text/plain; charset=utf-8"),
        *("Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+1"),
        *("YYYY-MM-DD", "hh:mm a", "d. MMM yyyy", "yyyy-MM-dd'T'HH:mm:ss.SSSZ", "MMMM Do [at] HH:mm", "yyyyMMdd"),
        *("2025-03-04T10:00:00Z", "rgb(0, 0, 0)", "calc(100% - 2px)", "aGVsbG8gd29ybGQ=", "data:image/png;base64,iVBO"),
        "M12 2L2 7l10 5z",
        *(r"^[a-z ]+$", r"\d{3}-\d{4}", "(?:a|b)", "/^abc$/i", "(red|green)+", ".*"),
    ),
    "lang": ("en", "english"),
    "textAlign": ("left",),
    "value": ("left",),
    "time_zone": ("CET",),
    "iconURLs": ("home",),
    "currency": ("EUR",),
    "request-method": ("GET",),
    "className": ("btn btn-primary", "flex items-center px-4"),
    "icon": ("fas fa-home",),
    "dateFormat": ("d M, Y", "l, F jS", "H:i"),
    "pattern": ("[A-Za-z0-9 ]+", "a *b"),
    "css": ("color: red; margin: 0",),
}
TEXTS = {
    "k": (
        *(
            "Save",
            "save",
            "Open the door",
            "OK",
            "CANCEL",
            "e-mail",
            "x-ray",
            "and/or",
            "Yes/No",
            "km/h",
            "e.g.",
            "Note:",
        ),
        *("loading...", "Left-to-right", "Day(s)", "file(s)", "Asia/Pacific", "Input/Output", "audio/video", "Sign-in"),
        *(
            "Add",
            "add",
            "Sammy",
            "Hmm",
            "TDD",
            "[Comment]",
            "a 'mm' b",
            "C# and .NET",
            "Why? (2)",
            "#1 choice",
            "M25 Class",
            "M 4 has 2 lanes",
        ),
        *("Kaffee-Fahrt", "grün-blau", "नमस्ते", "Open mdi:home", "5 * 3", "What (if)?"),
    ),
    "sign-in": ("sign-in",),
    "actions.sign-in": ("sign-in",),
    "type": ("Kind", "type", "Drop-down list", "größe", "number of items", "other..."),
    "unsupported_type": ("unsupported",),
    "class": ("first class", "First"),
    "Choose a color": ("blue",),
    "typed": ("left",),
    "defaultValue": ("Left", "on the left"),
    "format": ("Bold and italic", "Date: {date}", "of any kind"),
    "style": ("Plain: no borders",),
}


@pytest.mark.parametrize("value", [(key, value) for key, values in CODE.items() for value in values])
def test_code(value: tuple[str, str]) -> None:
    assert is_code(*value)


@pytest.mark.parametrize("value", [(key, value) for key, values in TEXTS.items() for value in values])
def test_texts(value: tuple[str, str]) -> None:
    assert not is_code(*value)
