"""Typeset the HTML of a page: subscripts and superscripts of formulas written in Unicode, and widths of table cells.

The pages write z_{t−1}, β_a and M^s, which read well as text. No script and no font is needed to show them.
"""

import re

_FORMULA = re.compile(r'<div class="language-text highlight"><pre><span></span><code>(.*?)</code></pre></div>', re.S)
_KEPT = re.compile(r"(<(pre|code|script|style|svg|h[1-6])\b.*?</\2>|<[^>]*>)", re.S)
_BRACES = re.compile(r"(?<=\S)([_^])\{([^{}]*)\}")
# One letter after `_` or `^`, if the symbol before it is one letter, has a mark, or is the name of an operator.
_LETTER = re.compile(
    r"((?<![A-Za-z_])(?:max|min|sup|det|argmax|sd|noise|floor|gap|[Rr]egret|[^\W\d_])|[\u0300-\u036f\u20d0-\u20ff)\]⁻¹²‖])"
    r"([_^])([^\W_]|\*|\|A\|)(?![A-Za-z_])"
)
_CELL = re.compile(r"<(td|th)>(.*?)</\1>", re.S)
_TAG = re.compile(r"<[^>]*>")


def typeset(html: str) -> str:
    """Return the HTML with formulas set, outside code and headings, and with a class for cells by length of text."""
    html = _FORMULA.sub(lambda match: f'<div class="formula">{_scripts(match[1])}</div>', html)
    parts, last = [], 0
    for match in _KEPT.finditer(html):
        parts += [_scripts(html[last : match.start()]), match[0]]
        last = match.end()
    return _CELL.sub(_cell, "".join([*parts, _scripts(html[last:])]))


def _scripts(text: str) -> str:
    """Return text with `_` and `^` of formulas as elements; the innermost braces first."""
    text = _LETTER.sub(lambda match: match[1] + _element(match[2], match[3]), text)
    while (changed := _BRACES.sub(lambda match: _element(match[1], match[2]), text)) != text:
        text = changed
    return text


def _element(sign: str, text: str) -> str:
    name = "sub" if sign == "_" else "sup"
    return f"<{name}>{text}</{name}>"


def _cell(match: re.Match[str]) -> str:
    """Keep short cells on one line and give long ones a width: a wide table scrolls and does not grow in height."""
    length = len(_TAG.sub("", match[2]))
    width = "short" if length <= 12 else "text" if length <= 40 else "long" if length <= 160 else "longest"
    return f'<{match[1]} class="{width}">{match[2]}</{match[1]}>'
