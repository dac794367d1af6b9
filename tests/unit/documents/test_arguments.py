"""Arguments of programs' strings, as msgfmt reads them."""

import pytest

from service.documents.arguments import format_of, in_order


@pytest.mark.parametrize(
    ("flag", "text", "found"),
    [
        ("c-format", "%s of %-5.2f%% in %*d, %1$s, %zu, %<PRIu64>, %m", "%s|%-5.2f|%%|%*d|%1$s|%zu|%<PRIu64>|%m"),
        ("objc-format", "%@ and %1$@, %ld", "%@|%1$@|%ld"),
        ("python-format", "%(name)s, %d, %5.1f, 100%%", "%(name)s|%d|%5.1f|%%"),
        ("python-brace-format", "{} {0!r:>{width}} {name} {{x}}", "{}|{0!r:>{width}}|{name}|{{|}}"),
        ("csharp-format", "{0,-10:N2} of {1:dd MMM}", "{0,-10:N2}|{1:dd MMM}"),
        ("java-format", "{0,number,#.##} of {1,choice,0#no or {2}}", "{0,number,#.##}|{1,choice,0#no or {2}}"),
        ("java-printf-format", "%1$tY-%d, %,d", "%1$tY|%d|%,d"),
        ("ruby-format", "%<n>d of %{name}, %<m>.1f, %s", "%<n>d|%{name}|%<m>.1f|%s"),
        ("php-format", "%'*10s %05d %1$s", "%'*10s|%05d|%1$s"),
        ("perl-brace-format", "{name} and { that }", "{name}"),
        ("qt-format", "%1 of %L2, 5%", "%1|%L2"),
        ("qt-plural-format", "%n file(s)", "%n"),
        ("sh-format", "$file or ${line_number}, $5", "$file|${line_number}"),
        ("scheme-format", "~a of ~5d~%", "~a|~5d|~%"),
        ("object-pascal-format", "%s %1:d %-5.2f", "%s|%1:d|%-5.2f"),
        ("boost-format", "%1% %3$s %s", "%1%|%3$s|%s"),
        ("gcc-internal-format", "%qs at %<x%>", "%qs|%<|%>"),
        ("smalltalk-format", "%1 of %2", "%1|%2"),
        ("lua-format", "%q is %5.1f", "%q|%5.1f"),
        ("", "%s costs 5% of the 100% fee, %(name)s", "%s|%(name)s"),
    ],
)
def test_arguments_of_each_kind_are_found(flag: str, text: str, found: str) -> None:
    assert [match[0] for match in format_of((flag,)).pattern.finditer(text)] == found.split("|")


@pytest.mark.parametrize(
    ("flag", "source", "found", "written"),
    [
        ("c-format", "%s %d", (0, 1), "%s %d"),
        ("c-format", "%s %d", (1, 0), "%2$d %1$s"),
        ("c-format", "%s %% %d %m", (2, 1, 0, 3), "%2$d %% %1$s %m"),
        ("c-format", "%*d %.*s", (1, 0), "%4$.*3$s %2$*1$d"),
        ("c-format", "%s %s", (1, 0), "%2$s %1$s"),
        ("c-format", "%2$s %1$s", (1, 0), "%1$s %2$s"),
        ("c-format", "%s %d", (1,), "%2$d"),
        ("object-pascal-format", "%s %d", (1, 0), "%1:d %0:s"),
        ("python-brace-format", "{} {:d}", (1, 0), "{1:d} {0}"),
        ("python-brace-format", "{b} {a}", (1, 0), "{a} {b}"),
        ("python-format", "%(a)s %(b)d", (1, 0), "%(b)d %(a)s"),
        ("python-format", "%s %d", (1, 0), None),
        ("lua-format", "%s %s", (1, 0), None),
        ("", "%s %d", (1, 0), None),
        ("", "%s %d", (0, 1), "%s %d"),
        ("scheme-format", "~a ~s", (1, 0), None),
    ],
)
def test_another_order_is_numbered_where_it_can(
    flag: str, source: str, found: tuple[int, ...], written: str | None
) -> None:
    ordered = in_order(format_of((flag,)), source.split(" "), found)
    assert (None if ordered is None else " ".join(ordered)) == written
