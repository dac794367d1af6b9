"""The parser: markdown-it with plugins, rules of our own, and the positions of what its rules find."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from service.documents.markdown.blocks import INTERRUPTED, block_rule, terms_rule
from service.documents.markdown.spans import SPAN, STOPS, inline_rule

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_MDX = re.compile(
    r"^(?:import [^\n]* from ['\"]|import ['\"]|export (?:default|const) )|\{/\*|<[A-Z]\w*[\s/>.]", re.MULTILINE
)


def parsed(source: str, *, is_mdx: bool) -> tuple[list["Token"], dict[str, dict[str, object]], bool]:
    """Return the tokens of Markdown, its definitions of references, and whether it is MDX, if only by its looks."""
    env: dict[str, object] = {"mdx": is_mdx or _MDX.search(source) is not None}
    tokens = _parser().parse(source, env)
    return tokens, env.get("references", {}), bool(env["mdx"])  # type: ignore[return-value]  # as the parser makes it


def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # slow to import
    from mdit_py_plugins.deflist import deflist_plugin
    from mdit_py_plugins.footnote import footnote_plugin

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.disable(["text_join", "fragments_join"])  # they would join tokens whose positions differ
    for name in ("newline", "escape", "backticks", "link", "image", "autolink", "html_inline"):
        rule = next(each.fn for each in parser.inline.ruler.__rules__ if each.name == name)
        parser.inline.ruler.at(name, _located(rule))
    parser.use(footnote_plugin, inline=False, move_to_end=False)
    parser.use(deflist_plugin)
    parser.block.ruler.before("deflist", "terms", terms_rule)
    parser.block.ruler.before("fence", "kept_block", block_rule, {"alt": INTERRUPTED})
    parser.inline.ruler.before("escape", "kept", inline_rule)
    parser.inline.terminator_re = re.compile(rf"{parser.inline.terminator_re.pattern}|{STOPS}")
    return parser


def _located(rule: "Callable[[StateInline, bool], bool]") -> "Callable[[StateInline, bool], bool]":
    """Return the rule of a parser with the positions of its tokens noted in them."""

    def located(state: "StateInline", silent: bool) -> bool:
        start, num_tokens, has_pending = state.pos, len(state.tokens), bool(state.pending)
        if not rule(state, silent):
            return False
        if not silent:
            new = state.tokens[num_tokens:]
            if has_pending and new:
                del new[0]  # the text before
            if new and new[0].type == "link_open" and new[0].info != "auto":
                end = state.md.helpers.parseLinkLabel(state, start, True)
                new[0].meta[SPAN] = start, start + 1
                new[-1].meta[SPAN] = end, state.pos
            elif new:
                new[0].meta[SPAN] = start, state.pos
        return True

    return located
