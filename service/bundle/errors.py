"""The error of a bundle that can't be used, and how it quotes others."""

CONVERT_AGAIN = "convert its checkpoint again with 'python -m export convert'"


class BundleError(Exception):
    """A bundle can't be used; the message names it, the reason and the remedy."""


def one_line(error: BaseException) -> str:
    """Return an error's message as one printable line for logs: libraries quote the contents of damaged files."""
    words = " ".join(str(error).split()) or type(error).__name__
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words[:1_000])
