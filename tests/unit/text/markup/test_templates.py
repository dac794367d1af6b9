"""Expressions of template languages in HTML come back byte for byte; conditions and loops stay between their texts."""

import pytest

from service.text.markup import BlockTranslation, parse
from tests.unit.text.markup.backwards import texts, turned

OUTPUTS = (
    *("{{ x }}", "{{x | upper}}", "{{{ x }}}", "{{ a && b }}", "{{ a < b ? \"x\" : 'y' }}", "{{ {a: {b: 1}} }}"),
    *("{!! $x !!}", "{$x.y|escape}", "${ a < b }", "#{ x }", "[[ x ]]", "[[${x.y}]]", "[% x %]", "<%= x %>"),
    *("<%- a > b %>", "<?= $x ?>", "<?php echo $a->b; ?>", "{a && b}", '{{ "a" | t }}', "{{x\n}}"),
)
CONTROLS = (
    *("{% if a < b %}", "{%- endif -%}", "{{#if x}}", "{{/if}}", "{{else}}", "{{ end }}", "{{ range .Items }}"),
    *("{{> part }}", "{{^x}}", "<% if (x) { %>", "<?php if ($a->b > 1): ?>", "<?php } else { ?>", "{#if a}"),
    *("{:else}", "{/if}", "{if $x > 1}", "{else}", "<#if x??>", "</#if>", '<@m a="b>"/>', '{{ "<b>" }}'),
)
COMMENTS = ("{{! x }}", "{{!-- x --}}", "{{-- x --}}", "{# x #}", "<%# x %>", "<%-- x --%>")


def test_what_stands_for_words_is_kept_as_one() -> None:
    for code in OUTPUTS:
        assert turned(f"<p>one {code} two.</p>") == f"<p>two {code} one.</p>"
        assert texts(f"<p>{code}</p>") == []


def test_what_controls_stays_between_its_texts_and_comments_are_marks() -> None:
    for code in CONTROLS:
        assert turned(f"<b>one two</b>{code}three four {code}") == f"<b>two one</b>{code}four three {code}"
    for code in COMMENTS:
        assert texts(f"one {code} two") == ["one two"]
        assert turned(f"{code} one two") == f"{code} two one"


@pytest.mark.parametrize(
    "html",
    [
        '<a href={{ a > b }} {{> part}} <?php if ($a->b) ?> title="<?= "x" ?>" <%= a > b %>>one</a>',
        "<p>one {{ no end</p>",
        "<0>one</0>",
        "<1><2>one</2></1><3/>",
        "[one](https://example.org/a_b)",
        '![one](a.png "title")',
        "<title>{{ x }} | one</title>",
        "<notranslate>left</notranslate> one",
        "<script>'{{ x }}'</script>one",
        "<p translate=no>left <b translate=yes>one</b> left</p>",
        "<p>one</p><html translate=no><p>left</p>",
    ],
)
def test_code_in_tags_and_what_comes_in_pairs(html: str) -> None:
    document = parse(html)
    (block,) = document.blocks
    assert document.render([BlockTranslation(block.text.replace("one", "two"))]) == html.replace("one", "two")
    assert "left" not in texts(html.replace("<notranslate>left", "<notranslate>"))[0]


def test_a_text_of_a_program_keeps_its_empty_lines_and_lists() -> None:
    source = "one two\n\nthree [four](x)\r\n\r\n- five\n- six"
    assert turned(source) == "two one\n\n[four](x) three\r\n\r\nfive -\nsix -"
    assert texts("<p>one\n\ntwo</p>") == ["one two"]


@pytest.mark.parametrize(
    "opening", ["{{", "{%", "{#", "[[", "${", "<%", "<?= ", "{", "[", "[a](", "<0>", '<#a "', "{{ {"]
)
def test_openings_without_an_end_are_text(opening: str) -> None:
    """Without bounds, each would search the rest of the text: some minutes instead of a moment."""
    assert len(parse(f"a {opening * 5_000} b").blocks) <= 2
