"""The kinds of placeholders, one table: the notation of each, and its origin.

All repetitions are bounded, possessive or end at the next sign of their kind, so that any text takes linear time. None
spans several lines.
"""

import re
from dataclasses import dataclass

LINE_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
LONGEST = 2_048  # of a placeholder: longer tags are not found, and longer addresses are cut

# An address ends at white space, quotation marks and text in scripts without spaces. Parentheses belong to it only in
# pairs, final punctuation does not.
_NOT_IN_URL = r"\s<>()\"“”„«»`\u3001-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff01-\uff65"
_URL_END = rf"(?:[^{_NOT_IN_URL}.,;:!?'’…*_~\[\]]|\([^{_NOT_IN_URL}]*\))"
_URL = rf"(?:[^{_NOT_IN_URL}]|\([^{_NOT_IN_URL}]{{0,200}}\)){{0,1000}}{_URL_END}"

_IN = rf"[^{{}}{LINE_ENDS}]"  # within braces
_BRACED = rf"\{{(?:{_IN}++|\{{{_IN}*+\}}){{0,30}}+\}}"  # {x}, {f({x: 1})}
_IN_ROUND = rf"\((?:[^(){LINE_ENDS}]++|\([^(){LINE_ENDS}]*+\)){{0,30}}+\)"
_ATTRIBUTES = rf"""(?:[ \t]++[\w:@.-]++=(?:"[^"<>{LINE_ENDS}]*+"|'[^'<>{LINE_ENDS}]*+'|[^\s"'<>=`]++))*+[ \t]*+/?+>"""
_ERB = rf"(?:[^%{LINE_ENDS}]++|%(?!>)){{0,60}}+%>"
_PHP = rf"(?:[^?{LINE_ENDS}]++|\?(?!>)){{0,60}}+\?>"
_JINJA = rf"(?:[^%{{{LINE_ENDS}]++|%(?!\}})|\{{(?!%)){{1,200}}+%\}}"
_CONTROL = "(?:if|else|elif|elseif|elsif|for|foreach|while|unless|switch|case|when|end|do|begin|try|catch)"
# A percent sign that no number precedes: not "100% sure", "50 %discount" or French "5 %d'eau".
_PERCENT = r"(?<![\d%])(?<!\d[ \u00a0\u202f])%"
_FLAGS = r"[-+#0,']*(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?"
_BLOCK = "(?i:br|hr|p|div|[uod]l|li|d[td]|table|t[rdh]|h[1-6])"
_ESCAPED_ATTRIBUTES = rf"(?:[ ](?:[^&<>{LINE_ENDS}]|&(?:quot|apos|amp|#39);){{0,300}})?/?&gt;"
_ENTITY = r"&(?:[A-Za-z][\w.-]{1,63}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});"
# An entity or escape that is a letter, as in caf&eacute; and caf\u00e9.
_LETTER = (
    r"(?:&[A-Za-z](?:acute|grave|circ|uml|tilde|cedil|ring|caron|slash|stroke|breve|macr|ogon);|&(?:szlig|[ao]elig);"
    r"|\\u[0-9A-Fa-f]{4})"
)

# A string of code, and JSON's objects and lists, whose braces may be two deep.
_STRING = rf"(?:\"(?:[^\"\\{LINE_ENDS}]|\\.){{0,200}}+\"|'(?:[^'\\{LINE_ENDS}]|\\.){{0,200}}+')"
_IN_OBJECT = rf"(?:[^{{}}\"'{LINE_ENDS}]|{_STRING})"
_INNER_OBJECT = rf"\{{(?:{_IN_OBJECT}|\{{{_IN_OBJECT}{{0,200}}+\}}){{0,200}}+\}}"
_KEY = rf"(?:{_STRING}|[A-Za-z_]\w{{0,40}})[ ]?:(?=[ ]?(?:[\"'\d{{\[-]|true|false|null))"
_OBJECT = rf"\{{[ ]?{_KEY}(?:{_IN_OBJECT}|{_INNER_OBJECT}){{0,400}}+\}}"
_LIST = rf"\[[ ]?{_STRING}(?:,[ ]?(?:{_STRING}|[\w.-]{{1,40}})){{0,100}}[ ]?\]"


# What a form asks for.
_FIELDS = (
    "name|surname|e-?mail|address|street|zip|city|country|phone|website|url|link|date|number|id|code|title|subject"
    "|message|amount|price|user|username|password|player|company|customer|client|recipient|sender|contact|product|order"
)
_FIELD = (
    rf"(?i:(?:(?:insert|enter|your|first|last|full|middle|account|invoice|event|file|due|start|end|{_FIELDS})[ _-]?)"
    rf"{{0,3}}(?:{_FIELDS})(?: here)?)"
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of placeholder: the signs that it begins with, and a regular expression; its origin is beside it.

    One that `is_apart` separates texts; one that `is_paired` counts only if the text has both: `[left]` and `[/left]`.
    """

    signs: str
    pattern: str
    is_apart: bool = False
    is_paired: bool = False


# In order of precedence: of several at the same position, those that contain others come first.
KINDS = (
    Kind("<", rf"<%(?:(?![=#@!%-])|-?[ ]?(?:{_CONTROL}(?!\w)|\}})){_ERB}", is_apart=True),  # ERB, EJS, JSP: statements
    Kind("<", rf"<%{_ERB}"),  # ERB, EJS, JSP: <%= x %>, <%- x %>, <%# x %>
    Kind("<", rf"<\?(?:php)?[ \t]*+(?:(?:end)?{_CONTROL}(?!\w)|\}}){_PHP}", is_apart=True),  # PHP: statements
    Kind("<", rf"<\?{_PHP}"),  # PHP: <?= $x ?>, <?php echo $x ?>
    Kind("<", rf"<!--(?:[^-{LINE_ENDS}]++|-(?!->)){{0,200}}+-->|<!\[CDATA\["),  # XML: comments, sections
    # HTML: blocks
    Kind(
        "<",
        rf"<(?=[^<>]{{1,{LONGEST - 2}}}>)/?+{_BLOCK}(?![\w:.-])"
        rf"{_ATTRIBUTES}",
        is_apart=True,
    ),
    # Attributes need values, so "x<y and z>w" does not match.
    Kind("<", rf"<(?=[^<>]{{1,{LONGEST - 2}}}>)/?+[A-Za-z][\w:.-]*+{_ATTRIBUTES}"),  # XML: <b>, </b>, <x id="1"/>
    Kind("<", r"</?\d{1,3}[ ]?/?>"),  # react-i18next, Lingui: <0>, </0>, <1/>
    # Unity: <color=#fff>
    Kind("<", rf"</?[A-Za-z][\w.-]{{0,40}}=(?:\"[^\"<>{LINE_ENDS}]*+\"|[^\s<>\"]++){_ATTRIBUTES}"),
    Kind("<", r"<(?:@[!&]?|#|![\^]?)[\w|.^@-]{1,80}>"),  # Discord, Slack: <@1>, <@&1>, <#1>, <!here>; Unity: <#fff>
    Kind("<", r"<(?:a?:\w{1,40}:\d{1,20}|t:-?\d{1,13}(?::[a-zA-Z])?|/[\w -]{1,100}:\d{1,20}|id:\w{1,30})>"),  # Discord
    Kind("<", rf"</?#[a-z]{{1,20}}(?:[ ][^<>{LINE_ENDS}]{{1,200}})?/?>", is_apart=True),  # FreeMarker: <#if x>
    # mail merge, Twine: <<First name>>
    Kind("<", rf"<</?[A-Za-z_][\w.:-]{{0,60}}(?:[ ](?:\$[^<>{LINE_ENDS}]{{1,200}}|[\w ]{{0,40}}\w))?>>"),
    Kind("<", r"(?<!\w)<[A-Za-z][\w-]{0,40}(?:[ ][\w-]{1,40}){1,3}>(?!\w)"),  # manuals, mail merge: <user name>
    Kind("{", r"\{(?!else\})\w{1,40}\}"),  # nearly all: {name}, {0}
    Kind("{", _OBJECT),  # JSON, JavaScript, Python: {"a": "b"}, {a: 1}
    # Handlebars, Mustache, Go: blocks
    Kind(
        "{",
        rf"\{{\{{[~-]?[ ]?(?:[#^/]|(?:else|end)(?![\w.])|(?:if|range|with|block|define)[ ]){_IN}*+\}}\}}",
        is_apart=True,
    ),
    # Mustache, Angular, i18next: {{x}}, {{{x}}}
    Kind("{", rf"\{{\{{\{{?+(?:{_IN}++|\{{{_IN}*+\}}){{1,30}}+\}}?\}}\}}"),
    # Jinja, Twig, Liquid, Django: statements
    Kind(
        "{",
        rf"\{{%-?[ ]?(?:{_CONTROL}|end\w+|empty|with|block|filter|autoescape|trans|blocktrans|blocktranslate|set|plural"
        rf"|raw|spaceless|comment)(?![\w.]){_JINJA}",
        is_apart=True,
    ),
    Kind("{", rf"\{{%{_JINJA}"),  # Jinja, Twig, Liquid, Django: {% url x %}
    Kind("{", rf"\{{#(?:[^#{{}}{LINE_ENDS}]++|#(?!\}})){{0,100}}+#\}}"),  # Jinja: comments
    # Svelte, Smarty: statements
    Kind(
        "{",
        rf"\{{(?:[#/:](?:if|each|await|key|else|then|catch|snippet)(?!\w){_IN}*+|/(?:if|foreach|for|while|section)|else"
        rf"|(?:if|elseif|foreach|for|while|section)[ ][^{{}}${LINE_ENDS}]*+\${_IN}*+)\}}",
        is_apart=True,
    ),
    # ICU, Java: {n, number, #.##}
    Kind(
        "{",
        rf"\{{[ ]?[\w.-]{{1,100}}[ ]?,[ ]?(?:number|date|time|spellout|ordinal|duration|list)[ ]?"
        rf"(?:,{_IN}{{1,200}})?\}}",
    ),
    Kind("{", rf"\{{\d{{1,3}}(?:,[ ]?-?\d{{1,3}})?(?::{_IN}{{1,100}})?\}}"),  # .NET: {0}, {0,-10:N2}, {1:dd MMM yyyy}
    # Python, C#, Fluent, MessageFormat 2, Smarty: {name}, {x!r:>10}, { $x }, { -brand }, {$n :number}, {$x|upper}
    Kind(
        "{",
        rf"\{{[ ]?[$@!-]?[A-Za-z0-9_$][\w.\-\[\]?$'\">]{{0,100}}(?:\([^(){{}}{LINE_ENDS}]{{0,200}}\))?"
        rf"(?:\|[^{{}}\s]{{1,100}})?(?:[ ]:[a-z]{_IN}{{0,100}}|[,!:=](?! ){_IN}{{1,100}})?[ ]?\}}",
    ),
    # Rust, Python, Fluent, Svelte: {}, {:?}, {"x"}, {@html x}, {/b}
    Kind(
        "{",
        rf"\{{(?:[#/@][a-z][\w-]{{0,40}}(?:[ ]{_IN}{{1,200}})?|[:!][^{{}}\s]{{1,40}}"
        rf"|[ ]?\"[^\"{{}}{LINE_ENDS}]{{0,100}}\"[ ]?)?\}}",
    ),
    Kind("{", rf"\{{!!{_IN}{{1,200}}!!\}}"),  # Blade: {!! $x !!}
    # mail merge, XAML, ASS, URI templates: {First Name}, {Binding x}, {\i1}, {?q}
    Kind(
        "{", r"(?<![A-Za-z\]])\{[ ]{0,3}[^\s{}#,]{1,60}(?:[ ][^\s{},]{1,40}){0,2}[ ]{0,3}\}|\{\\[\w\\&(),.-]{1,200}\}"
    ),
    Kind("[", _LIST),  # JSON: ["a", "b"]
    Kind("'", r"'[{}]+'|(?<!\S)''(?!\S)"),  # ICU: quoted braces; code: an empty string
    Kind("$#@%", rf"[$#@%]!?{_BRACED}"),  # shell, Ruby, Rails, ES, Thymeleaf: ${x}, #{x}, %{x}, ${a.b(c)}
    Kind("$", rf"\$(?:t[cm]?)?{_IN_ROUND}"),  # i18next, shell: $t(key), $(command)
    Kind("$", r"\$\[[A-Za-z_][\w.]{0,60}\]"),  # surveys: $[name]
    Kind("$", r"\$[1-9](?!\d|[.,]\d)", is_paired=True),  # Chrome, MediaWiki: $1 of $2
    Kind("$", r"(?<![\w$])\$(?=[^$\n\r]{1,80}[\\^_=])[^\s$](?:[^$\n\r]{0,80}[^\s$])?\$(?![\w$])"),  # LaTeX: $x^2$
    Kind("$", r"\$\$?[A-Za-z_]\w{0,100}\$\$?"),  # Chrome: $NAME$
    # shell, PHP, Velocity, Salesforce: $NAME, $user->name, $Label.c.Name
    Kind(
        "$",
        r"(?<![\w$])\$(?:env:)?[A-Za-z_]\w{0,100}(?:->\w{1,64}|\[[^\[\]\s]{1,64}\]|\.[a-z_]\w{0,64}|(?<=\.c)\.[A-Z]\w{0,64}){0,5}(?:(?<=[A-Z])(?:/[\w.-]{1,60}(?<!\.)){1,8})?",
    ),
    # Velocity
    Kind("#", rf"#(?:(?:if|elseif|foreach|set|parse|include)[ ]?{_IN_ROUND}|(?:else|end)(?!\w))", is_apart=True),
    # mail merge: #NAME#
    Kind("#", r"#(?:#[A-Za-z_]\w{0,60}#|##[A-Za-z_]\w{0,60}##|[A-Za-z][A-Za-z0-9_]{1,60})#(?!\w)"),
    Kind("@", r"@@[A-Za-z_][\w.-]{0,60}@@|(?<!\w)@[A-Za-z_][\w.-]{0,60}@(?!\w)"),  # configure, Maven, Ant: @NAME@
    Kind("@", rf"(?<!\w)@(?:(?:end)?{_CONTROL}(?!\w)(?:[ ]?{_IN_ROUND})?)", is_apart=True),  # Blade, Razor: @if (x)
    Kind("@", rf"(?<!\w)@[a-z]\w{{1,40}}{_IN_ROUND}"),  # Blade: @lang('x')
    # vue-i18n: @:key
    Kind("@", rf"@(?:\.\w{{1,40}})?:(?:\{{{_IN}{{1,100}}\}}|\([\w.]{{1,100}}\)|\w(?:[\w.]{{0,100}}\w)?)"),
    # names in chats; Razor: @(x)
    Kind("@", rf"@\[[^\[\]{LINE_ENDS}]{{1,60}}\]\([^(){LINE_ENDS}]{{1,100}}\)|(?<!\w)@{_IN_ROUND}"),
    # Drupal: @count; Razor: @Model.Name; Android: @string/ok; chats
    Kind("@", r"(?<![\w@.+-])@[A-Za-z_][\w-]{0,63}(?:/[A-Za-z][\w.-]{0,60}\w|(?:\.[A-Z]\w{0,63}){0,5})"),
    Kind("!", r"(?<![^\s(\"'\[>])![a-z_][\w-]{1,63}(?![\w!])"),  # Drupal: !link
    Kind(":", r"(?<![\w:]):[a-z][\w:+.-]{0,60}:`[^`\n\r]{1,200}`"),  # reStructuredText: :kbd:`Ctrl`
    Kind(":", r"(?<![\w:]):[a-z+-][a-z0-9_+-]{1,40}:(?![\w:])"),  # emoji codes: :tada:
    Kind(":", r"(?<![\w:;]):[A-Za-z_]\w{1,63}(?![\w:])"),  # Laravel, Drupal, SQL: :attribute
    Kind("%", rf"{_PERCENT}[sd](?![\w%.-])"),  # C and its like: %s, %d
    # mail merge: %%First name%%, %%=f(@x)=%%, %FIRST NAME%
    Kind(
        "%",
        r"(?<!\d)%%(?:[A-Za-z_][\w ]{0,60}\w|=[^%\n\r]{1,200}=|\[[^%\[\]\n\r]{1,200}\])%%"
        r"|(?<![\w%])%[A-Z]\w{0,40}(?:[ ][A-Z]\w{0,40}){1,3}%(?![\w%])",
    ),
    Kind("%", r"%\((?:\w|[.-]){1,100}\)[-+#0]*\d{0,4}(?:\.\d{1,4})?[diouxXeEfFgGcrsa]"),  # Python: %(name)s
    Kind("%", r"%[-+#0]*\d{0,4}<\w{1,64}>[-+#0 ]*\d{0,4}(?:\.\d{1,4})?[A-Za-z]"),  # Ruby: %<name>d
    Kind("%", r"%(?:\d{1,2}\$)?#@\w{1,64}@"),  # Apple: %#@files@
    # printf, Java: %1$s, %2$.3f, %1$tY
    Kind("%", r"%\d{1,2}\$[-+#0,' ]*\d{0,4}(?:\.\d{1,4})?(?:t[A-Za-z]|(?:hh?|ll?|[qjztL])?[A-Za-z@])"),
    Kind("%", r"%[-+#0 ]*\[\d{1,2}\][-+#0 ]*\d{0,4}(?:\.\d{1,4})?[A-Za-z]"),  # Go: %[1]s
    Kind("%", rf"{_PERCENT}L(?:\d{{1,2}}(?!\d)|n(?![A-Za-z]))"),  # Qt: %L1, %Ln
    Kind("%", r"%\d{1,2}![^!\s]{1,20}!"),  # Windows: %1!s!
    # Symfony, Twig, Windows, Boost: %name%
    Kind("%", r"(?<![\w%])%(?:\d{1,2}|[A-Za-z_](?:[\w.-]{0,63}\w)?)%(?![\w%])"),
    Kind("%", r"(?<![\d%])%[A-Za-z_]\w{3,64}%(?!%)"),  # the same, between letters
    Kind("%", r"%~[a-z]{0,8}\d"),  # Windows: %~dp0
    Kind("%", r"%\d{1,2}:[-.\d]{0,6}[a-zA-Z](?!\w)"),  # Delphi: %0:s
    # printf: %s, %-10s, %.2f, %ld, %*d; strftime: %Y
    Kind(
        "%",
        rf"{_PERCENT}{_FLAGS}(?:@|[ds](?:\d(?!\w)|(?![a-z]{{3}}))|(?:hh?|ll?|I64|[qjztL])[diouxXeEfFgGnsc](?![A-Za-z])"
        r"|(?:ll[diux]|(?<=\.\d)[feg])(?![A-Za-z]{3})|[A-Za-z](?![A-Za-z]))",
    ),
    Kind("%", rf"{_PERCENT}\d{{1,2}}(?![\d%]|[.,]\d)", is_paired=True),  # Qt: %1
    Kind("%", rf"(?<![\w%]){_PERCENT}[a-z_][a-z0-9_-]{{2,63}}(?![\w%])"),  # Drupal: %author
    Kind("%", r"%\[[A-Za-z_]\w{0,60}\]|%<[A-Za-z_]\w{0,60}>"),  # mail merge: %[name]
    Kind("%", r"%%"),  # printf: %%
    Kind("&", rf"&lt;/?{_BLOCK}{_ESCAPED_ATTRIBUTES}", is_apart=True),  # HTML: escaped blocks
    # XML: escaped tags, as in Android's and .NET's strings
    Kind("&", rf"&lt;/?[A-Za-z][\w:.-]{{0,60}}{_ESCAPED_ATTRIBUTES}"),
    Kind("&", _ENTITY),  # XML, HTML: character references
    Kind("&", r"(?<!&)&&(?!&)"),  # Qt, Windows: an ampersand that is no accelerator; code: and
    # mail merge: [Your name], «FirstName»; other words in brackets are text: [sic], [laughs]
    Kind(
        "[«‹⟨【:!",
        rf"[\[«‹⟨【][ ]?{_FIELD}[ ]?[\]»›⟩】]|\[[*+!|~^=-]{{1,2}}\w[\w .-]{{0,40}}[*+!|~^=-]{{1,2}}\]"
        rf"|«[ ]?[A-Za-z]\w{{0,40}}(?:_|[a-z][A-Z])\w{{1,40}}[ ]?»|::{_FIELD}::|!!{_FIELD}!!",
    ),
    # keys: [Enter], [Ctrl+C]
    Kind(
        "[",
        r"\[(?:(?:Ctrl|Alt|Shift|Cmd|Win)[ ]?[+-][ ]?){0,3}"
        r"(?:Ctrl|Alt|Shift|Cmd|Win|Enter|Esc|Tab|Del|PgUp|PgDn|F\d{1,2}|[A-Z])\]",
    ),
    Kind("[", rf"\[%(?:[^%{LINE_ENDS}]++|%(?!\])){{0,60}}+%\]"),  # Template Toolkit: [% name %]
    Kind("[", r"\[\[[\w.:-]{1,60}\]\]"),  # Bitrix, MODX, mail merge: [[name]]
    # BBCode: blocks
    Kind(
        "[",
        r"\[(?:/?(?:br|hr|li|ul|ol|t[rdh])|\*)\]|\[/?(?:table|list|quote|center|left|right|code)(?:=[^\[\]\s]{1,200})?\]",
        is_apart=True,
        is_paired=True,
    ),
    # BBCode
    Kind(
        "[", rf"\[/[a-z][\w-]{{0,40}}\]|\[/?(?:b|i|u|img|url|sup|sub)\]|\[[a-z]{{1,20}}=[^\[\]{LINE_ENDS}]{{1,300}}\]"
    ),
    # BBCode
    Kind("[", r"\[(?:s|spoiler|size|color|font|email|youtube|video|user|wave|shake|rainbow)\]", is_paired=True),
    # WordPress: [gallery id="1"]
    Kind(
        "[",
        rf"\[[a-z][\w-]{{0,40}}(?:[ ]++[\w-]++=(?:\"[^\"{LINE_ENDS}]*+\"|'[^'{LINE_ENDS}]*+'|[^\s\]\"']++))++[ ]?/?\]",
    ),
    # Maketext: [_1], [quant,_1,file]
    Kind("[", r"\[_\d{1,2}\]|\[(?:quant|numf|numerate|sprintf|\*|#),[^\[\]]{1,200}\]"),
    # Drupal, Ren'Py, Paradox, mail merge: [site:name], [a_b], [Root.GetName]
    Kind("[", r"\[~?[A-Za-z]\w{0,40}(?:[_.:][\w-]{1,40}){1,5}(?:![a-z]{1,5})?\]"),
    Kind("]", r"\]\]>"),  # XML: sections
    Kind("\\", r"\\(?:033|x1[bB]|e|u001[bB])\[[0-9;]{0,32}[A-Za-z]"),  # terminals' colours, escaped
    Kind("\\", r"\\\\[A-Za-z][\w.-]{0,60}\\[^\s\"<>|*?]{1,250}"),  # Windows: network paths
    # LaTeX: \ref{x}, \emph
    Kind(
        "\\",
        r"\\(?:\w{0,10}cite\w?|\w{0,8}ref|label|url|includegraphics|begin|end)\*?(?:\[[^\[\]{}]{0,60}\])?\{[^{}\n\r]{1,100}\}"
        r"|\\(?![nrt][A-Z])[A-Za-z]{2,20}(?=\{)|(?<!\w)\\(?![nrtuUx])[A-Za-z]{3,20}(?![\w\\])",
    ),
    Kind("\\", r"(?:\\r\\n|\\[nrt])(?:\\r\\n|\\[nrt])*+", is_apart=True),  # C, JSON: escaped line ends and tabs
    Kind("\\", r"\\(?:u\{[0-9A-Fa-f]{1,6}\}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2})"),  # C, JSON: characters
    Kind("\\", r"\\[A-Za-z]{1,8}\[\w{1,8}\]|\\[.|!><^{}$\\\"'/@?#&]"),  # RPG Maker: \N[1]; escaped signs
    Kind("\\", rf"\\{_IN_ROUND}"),  # Swift: \(name)
    # code
    Kind("`", r"(?<![`\w])(?:``[^`\s](?:[^`\n\r]{0,200}[^`\s])?``|`[^`\s](?:[^`\n\r]{0,200}[^`\s])?`)(?![`\w])"),
    Kind("§", r"§(?:[A-Za-z!]|\d(?=[^\W\d]|[§<{%]))"),  # Minecraft, Paradox: §a, §!
    Kind("£", r"£[A-Za-z]\w{0,40}£"),  # Paradox: £gold£
    Kind("~", r"(?<!\w)~[adspwnxAS%](?!\w)"),  # Erlang, Lisp: ~p, ~s
    Kind("\x1b", r"\x1b\[[0-9;?]{0,32}[A-Za-z]"),  # terminals' colours
    Kind("*", r"\*\|[^|\n\r]{1,60}\|\*"),  # Mailchimp: *|NAME|*
    Kind("|", r"\|(?:plural|ordinal|gender|hpp)\([^()]{1,200}\)"),  # Unreal: {n}|plural(one=a,other=b)
    # reStructuredText, mail merge: |name|, ~name~, ^name^
    Kind(
        "|~^=",
        "|".join(
            rf"(?<![\w{sign}]){sign}[A-Za-z][\w.-]{{0,40}}{sign}(?![\w{sign}])" for sign in (r"\|", "~", r"\^", "=")
        ),
    ),
    Kind("|", r"\|\|\|\||(?<=[ ])\|(?=[ ])|(?<=[\w.!?})])\|(?=[\w{\[:])", is_apart=True),  # Polyglot, Laravel, vue-i18n
    # constants: __NAME__
    Kind("_", r"(?<!\w)__(?:\d{1,2}|[A-Z][A-Z0-9]*(?:_[A-Z0-9]++)*)__(?:[a-z0-9-]{1,60}__)?(?!\w)"),
)

# Those that begin with a letter, searched for only where a text has one of these signs.
WORD_SIGNS = ("://", "www.", "@", ":\\", "\\u", "&", "`")
WORD_KINDS = (
    Kind("", rf"(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.-]{{1,19}}://|www\.(?=\w)){_URL}"),  # addresses
    # e-mail addresses, user@host, package@1.2.3
    Kind(
        "",
        r"(?<![A-Za-z0-9.+%_-])(?:mailto:)?[A-Za-z0-9.+%_-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,8}(?![A-Za-z0-9@])(?<!@[A-Za-z])",
    ),
    # Windows: paths
    Kind("", r"(?<!\w)[A-Za-z]:\\(?:(?:[^/:*?\"<>|\s]|[ ](?=[^/:*?\"<>|\s\\]{1,60}\\)){0,250}[^/:*?\"<>|\s.,;!)])?"),
    # JavaScript: t`x`
    Kind("", r"(?<!\w)(?:String\.raw|styled\.\w{1,20}|html|css|sql|gql|msg|tw|[tb])`[^`\n\r]{1,200}`(?![`\w])"),
    Kind("", rf"(?<!\w)\w{{0,40}}(?:{_LETTER}\w{{0,40}}){{1,20}}+"),  # words with escaped letters
)

_KEPT_ELEMENTS = "code|kbd|pre|tt|samp|var|command|filename|icode|envar|shortcut|placeholder|resource|interface"
_BBCODE = "b|i|u|s|url|color|size|quote|code|list|img|center|font|email|h[1-6]"
_ROLE = r":[A-Za-z][\w:+.-]{0,40}:"
# Keyboards' keys, in English and German
MODIFIERS = "Ctrl|Control|Strg|Alt ?Gr|Alt|Shift|Umschalt|Meta|Cmd|Command|Option|Opt|Super|Windows|Win|Fn"
KEYS = (
    r"F\d{1,2}|Delete|Del|Escape|Esc|Insert|Ins|Home|End|PgUp|PgDn|Page ?(?:Up|Down)|Enter|Return|Tab|Space|Backspace"
    r"|(?:Up|Down|Left|Right)(?: Arrow)?|Click|Entf|Einfg|Pos1|Ende|Eingabe"
)

# What is no text in strings of programs (gettext, XLIFF) besides their arguments, in order of precedence, by what
# `documents/program_strings.py` makes of it: most is formatting there, whose words are translated.
STRING_KINDS = {
    # Kept with its text, or if an argument is in it, formatting: <kbd>Ctrl</kbd>
    "element": (rf"<(?P<name>{_KEPT_ELEMENTS})(?:\s[^<>]{{0,200}})?>[^<>]{{0,200}}</(?P=name)>",),
    # Formatting, or a break
    "tag": (
        r"</?[A-Za-z0-9][^<>]{0,500}>",  # HTML, Pango, KUIT: <b>, </b>, <br/>
        rf"\[/?(?:{_BBCODE})(?:=[^][\n]{{1,200}})?\]",  # BBCode: [b], [url=x]
    ),
    # Kept
    "entity": (
        r"&lt;/?[A-Za-z0-9][\w./:-]{0,60}&gt;",  # &lt;name&gt;
        r"&(?:\#\d{1,7}|\#x[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});",  # &nbsp; &#160;
    ),
    # Kept, or if an argument is in it, formatting
    "literal": (
        rf"{_ROLE}`[^`<>\n]{{1,200}}`",  # reStructuredText: :kbd:`Ctrl`
        r"``(?:[^`\n]|`(?!`)){1,200}``",  # reStructuredText, Markdown: ``code``
        r"`[^`'<>\n]{1,200}`_{0,2}(?!\w)",  # reStructuredText, Markdown: `code`, `link`_
        r"(?<!\w)\|[\w.-]{1,60}\|(?!\w)",  # reStructuredText: |name|
        r"\\[\"']",  # escaped quotation marks
        r"(?<![\w-])-(?:[A-Za-z?]|-[A-Za-z][\w-]{0,40})(?![\w-])",  # options of programs: -h, --help
    ),
    # A break
    "escape": (r"\\[nrt]",),
    # Formatting around a text
    "around": (
        rf"(?:{_ROLE})?`[^`<>\n]{{1,200}}<[^`<>\n]{{1,500}}>`_{{0,2}}",  # reStructuredText: :ref:`title <target>`
        r"\*\*(?=\S)[^*\n]{1,500}(?<=\S)\*\*",  # **strong**
        r"\[[^][\n]{1,500}\]\([^()\s]{1,1000}\)",  # Markdown: [text](address)
    ),
    # Kept: the key behind a menu's entry
    "shortcut": (rf"(?<=\t)(?:(?:(?:{MODIFIERS})[+-]){{1,4}}\S{{1,12}}|{KEYS})\Z",),
    # A break: "Open..."
    "ellipsis": (r"(?:\.\.\.|…)\s{0,20}(?:\Z|(?<=\t))",),
}


def compiled(kinds: tuple[Kind, ...]) -> re.Pattern[str]:
    """Return a regular expression for any of the kinds; the matching group's index, less one, is that of the kind."""
    return re.compile("|".join(f"({kind.pattern})" for kind in kinds))
