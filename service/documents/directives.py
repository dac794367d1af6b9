"""Directives of docutils, Sphinx and their extensions, in reStructuredText and MyST: which of their parts are text.

Sources: https://docutils.sourceforge.io/docs/ref/rst/directives.html,
https://www.sphinx-doc.org/en/master/usage/restructuredtext/directives.html and https://myst-parser.readthedocs.io.
"""

import enum
import re
from collections.abc import Sequence

from service.documents.document import notes_on_left

TEXT_OPTIONS = ("alt", "caption")
"""The options of any directive whose values are text."""
TEXT_ROLES = "(?:std:)?(?:ref|numref|doc|term|any|download)"
"""A pattern of the roles that may have a text before what they refer to, as in `the text <target>`."""
_MAX_NAMES = 10  # in a note


class Directive(enum.Enum):
    """The kind of a directive: the first that its name fits."""

    VERSION = re.compile("version-?(?:added|changed|removed|deprecated)|deprecated")  # a number, and text
    KEPT = re.compile(
        """code|code-block|code-cell|sourcecode|literalinclude|parsed-literal|prompt|highlight|include|math|toctree|raw
        |replace|unicode|date|contents|tableofcontents|sectnum|image|index|meta|role|default-role|default-domain|target-notes|title
        |(?:js:|py:)?module|(?:py:)?currentmodule|tabularcolumns|productionlist|doctest|test(?:code|output|setup|cleanup)
        |graph|graphviz|digraph|mermaid|uml|plantuml|plot|ipython|bibliography|autosummary|auto[a-z]+|click|argparse|program
        |namespace|todolist|inheritance-diagram|(?:section|code|module)author|button-link|button-ref
        |jupyter-execute|click:(?:example|run)|code-tab|r|python|julia|bash|sh|sql|ojs|dot|stan|rcpp|js""",
        re.VERBOSE,
    )
    TITLED = re.compile(  # the argument and the body are text
        """attention|caution|danger|error|hint|important|note|tip|warning|admonition|seealso|todo|topic|sidebar|rubric
        |centered|epigraph|highlights|pull-quote|table|list-table|dropdown|toggle|card|grid-item-card|tab-item|tab
        |group-tab|details|aside|margin|(?:prf:)?(?:axiom|corollary|definition|example|exercise|lemma|proof|proposition|remark
        |solution|theorem)""",
        re.VERBOSE,
    )
    PROSE = re.compile(  # only the body is text: of figures, containers, and objects, whose arguments are code
        r"""figure|figure-md|container|compound|only|ifconfig|hlist|grid|grid-item|tab-set|tabs|card-carousel|div|class
        |rst-class|cssclass|header|footer|function|(?:class|static)?method|attribute|property|data|exception|describe
        |decorator(?:method)?|object|option|program-option|cmdoption|envvar|confval|setting|signal|event
        |(?:py|c|cpp|js|rst|std|php|rb):[\w:-]+""",
        re.VERBOSE,
    )
    GLOSSARY = re.compile("glossary")  # definitions are text, terms are what the role `term` refers to
    CELLS = re.compile("csv-table")  # so are its title, and the cells of its option `header`
    UNKNOWN = re.compile(".*", re.DOTALL)


def kind_of(name: str) -> Directive:
    return next(kind for kind in Directive if kind.value.fullmatch(name.lower()))


def unknown_directives(names: Sequence[str]) -> list[str]:
    some = ", ".join(list(dict.fromkeys(names))[:_MAX_NAMES])
    return notes_on_left(len(names), "unknown directive", why=some)
