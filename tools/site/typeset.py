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


def typeset(html: str) -> str:
    """Return the HTML with formulas set, outside code and headings, classes for cells, and linked figures."""
    html = _NO_DESCRIPTION.sub("", html)
    html = _FORMULA.sub(lambda match: f'<div class="formula">{_scripts(match[1])}</div>', html)
    parts, last = [], 0
    for match in _KEPT.finditer(html):
        parts += [_scripts(html[last : match.start()]), match[0]]
        last = match.end()
    html = _TABLE.sub(_table, "".join([*parts, _scripts(html[last:])]))
    return _FIGURE.sub(r'<a class="figure" href="\1" title="Open in full size">\g<0></a>', html)


def _scripts(text: str) -> str:
    """Return text with `_` and `^` of formulas as elements; the innermost braces first."""
    text = _LETTER.sub(lambda match: match[1] + _element(match[2], match[3]), text)
    while (changed := _BRACES.sub(lambda match: _element(match[1], match[2]), text)) != text:
        text = changed
    return text


def _element(sign: str, text: str) -> str:
    name = "sub" if sign == "_" else "sup"
    return f"<{name}>{text}</{name}>"


def _table(match: re.Match[str]) -> str:
    """Give cells a class by their length; the first column of a table with many columns stays in view."""
    rows = [_CELL.findall(row) for row in _ROW.findall(match[0])]
    is_wide = max(map(len, rows), default=0) >= 6 and all(len(_text(row[0][1])) <= 60 for row in rows if row)
    is_wide = is_wide and "span=" not in match[0]  # otherwise the first cell of a row can be in another column
    html = _CELL.sub(_cell, match[0])
    return re.sub(r'(<tr>\s*<t[dh] class="\w+)"', r'\1 key"', html) if is_wide else html


def _text(html: str) -> str:
    return _TAG.sub("", html)


def _cell(match: re.Match[str]) -> str:
    """Keep short cells and numbers on one line and give long ones a width: a wide table does not grow in height."""
    text = _text(match[2])
    length = 0 if len(text) <= 20 and not re.search("[A-Za-z]", text) else len(text)
    width = "short" if length <= 12 else "text" if length <= 40 else "long" if length <= 160 else "longest"
    return f'<{match[1]} class="{width}">{match[2]}</{match[1]}>'
