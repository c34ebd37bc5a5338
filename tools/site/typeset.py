"""Typeset the HTML of a page: formulas written in Unicode, widths of table cells, and links to figures in full size.

The pages write z_{t−1}, β_a and M^s, which read well as text. No script and no font is needed to show them.
"""

import re

_FORMULA = re.compile(r'<div class="language-text highlight"><pre><span></span><code>(.*?)</code></pre></div>', re.S)
_KEPT = re.compile(r"(<(pre|code|script|style|svg|h[1-6])\b.*?</\2>|<[^>]*>)", re.S)
_BRACES = re.compile(r"(?<=\S)([_^])\{([^{}]*)\}")
# One letter or "max" after `_` or `^`, if the symbol before is one letter, has a mark, or is the name of an operator.
_LETTER = re.compile(
    r"((?<![A-Za-z_])(?:max|min|sup|det|argmax|mean|sd|noise|floor|gap|low|[UL]CB|[Rr]egret|[^\W\d_])"
    r"|[α-ωΑ-Ω\u0300-\u036f\u20d0-\u20ff)\]⁻¹²‖])"
    r"([_^])(max|[^\W_]|\*|\|A\|)(?![A-Za-z_])"
)
_CELL = re.compile(r"<(td|th)>(.*?)</\1>", re.S)
_FIGURE = re.compile(r'<img\b[^>]*\bsrc="(?!data:)([^"]+)"[^>]*>')
# What the API reference writes after the type of a result that has no description.
_NO_DESCRIPTION = re.compile(r'\s*–\s*<div class="doc-md-description">\s*</div>')
_TABLE = re.compile(r"<table>.*?</table>", re.S)
_ROW = re.compile(r"<tr>.*?</tr>", re.S)
_TAG = re.compile(r"<[^>]*>")
_HEAD = re.compile(r"<thead>.*?</thead>", re.S)
_DATA = re.compile(r'<td class="(\w+)')
_INLINE_CODE = re.compile(r"(<pre\b.*?</pre>)|<code>(.*?)</code>", re.S)
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
# Where a line must not end: inside "k = 1", "3.2 ± 0.1", "5 ms" and "0.3 *".
_UNBROKEN = re.compile(
    r"(?<=\b[A-Za-zα-ω]) [=≈≥≤] (?=[−\d½])|(?<=[\d%]) ± (?=\d)|(?<=\d) (?=(?:[mµ]?s|[kMG]B)\b)|(?<=\d) (?=\*)"
)
# A letter with a mark above it: few fonts for code place the mark over a Greek letter.
_ACCENT = re.compile(r"\w[\u0300-\u036f]+")


def typeset(html: str) -> str:
    """Return the HTML with formulas set, outside code and headings, classes for cells, and linked figures."""
    html = _NO_DESCRIPTION.sub("", html)
    html = _FORMULA.sub(_formula, html)
    html = _INLINE_CODE.sub(_code, html)
    parts, last = [], 0
    for match in _KEPT.finditer(html):
        parts += [_scripts(html[last : match.start()]), match[0]]
        last = match.end()
    html = _TABLE.sub(_table, "".join([*parts, _scripts(html[last:])]))
    return _FIGURE.sub(r'<a class="figure" href="\1" title="Open in full size">\g<0></a>', html)


def _formula(match: re.Match[str]) -> str:
    text = _ACCENT.sub(lambda letter: f'<span class="accent">{letter[0]}</span>', _scripts(match[1]))
    return f'<div class="formula">{text}</div>'


def _code(match: re.Match[str]) -> str:
    """Keep an option such as `--out` of a command on one line."""
    if match[1]:
        return match[1]
    return "<code>" + _OPTION.sub(r'<span class="option">\g<0></span>', match[2]) + "</code>"


def _scripts(text: str) -> str:
    """Return text with `_` and `^` of formulas as elements; the innermost braces first."""
    text = _UNBROKEN.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    text = _LETTER.sub(lambda match: match[1] + _element(match[2], match[3]), text)
    while (changed := _BRACES.sub(lambda match: _element(match[1], match[2]), text)) != text:
        text = changed
    return text


def _element(sign: str, text: str) -> str:
    name = "sub" if sign == "_" else "sup"
    return f"<{name}>{text}</{name}>"


def _table(match: re.Match[str]) -> str:
    """Give cells a class by their length; keep the first of many columns in view, and prepare text for phones."""
    rows = [_CELL.findall(row) for row in _ROW.findall(match[0])]
    is_wide = max(map(len, rows), default=0) >= 6 and all(len(_text(row[0][1])) <= 60 for row in rows if row)
    is_wide = is_wide and "span=" not in match[0]  # otherwise the first cell of a row can be in another column
    html = _CELL.sub(_cell, match[0])
    if _is_prose(match[0], rows):
        return _stacked(html, [_text(cell[1]).replace('"', "&quot;") for cell in rows[0]])
    return re.sub(r'(<tr>\s*<t[dh] class="\w+)"', r'\1 key"', html) if is_wide else html


def _is_prose(html: str, rows: list[list[tuple[str, str]]]) -> bool:
    """Whether a table has three to five columns, one of them with text that does not fit on a phone."""
    if len(rows) < 2 or not 3 <= len(rows[0]) <= 5 or "span=" in html:
        return False
    if not _HEAD.search(html) or any(tag == "th" for row in rows[1:] for tag, _ in row):
        return False
    return any(len(_text(text)) > 40 for row in rows[1:] for _, text in row[1:])


def _stacked(html: str, heads: list[str]) -> str:
    """Return a table whose cells can be shown below one another, each with the name of its column."""

    def labelled(row: re.Match[str]) -> str:
        names = iter(heads)
        return _DATA.sub(lambda cell: f'<td data-label="{next(names, "")}" class="{cell[1]}', row[0])

    return _ROW.sub(labelled, html).replace("<table>", "<table data-stack>", 1)


def _text(html: str) -> str:
    return _TAG.sub("", html)


def _cell(match: re.Match[str]) -> str:
    """Keep short cells and numbers on one line and give long ones a width: a wide table does not grow in height."""
    text = _text(match[2])
    length = 0 if len(text) <= 20 and not re.search("[A-Za-z]", text) else len(text)
    width = "short" if length <= 12 else "text" if length <= 40 else "long" if length <= 160 else "longest"
    return f'<{match[1]} class="{width}">{match[2]}</{match[1]}>'
