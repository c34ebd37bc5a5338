"""Show a Jupyter notebook, as it was saved, as a Markdown page. Nothing is executed."""

import json
import re
from typing import Any

_HEAD = re.compile(r"(<tr>(?:(?!</tr>).)*</tr>\s*)(<tr>(?:(?!</tr>).)*</tr>)(?=\s*</thead>)", re.S)
_NAME = re.compile(r"<th>(.*?)</th>", re.S)
IMAGES = {"image/png": "data:image/png;base64,", "image/jpeg": "data:image/jpeg;base64,"}


def to_markdown(text: str, name: str) -> str:
    """Return the page of a notebook: Markdown cells, code, and its printed, shown and drawn results.

    Parameters
    ----------
    text : str
        Content of the .ipynb file (nbformat 4).
    name : str
        Name of the file, which is beside the page.
    """
    notebook = json.loads(text)
    language = notebook.get("metadata", {}).get("language_info", {}).get("name", "python")
    parts = []
    for cell in notebook["cells"]:
        source = _joined(cell["source"]).strip("\n")
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code" and source:
            parts.append(_fenced(source, language))
            parts.extend(filter(None, (_output(each) for each in cell["outputs"])))
    parts.insert(1, f'<p class="download"><a href="{name}" download>Download this notebook</a></p>')
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any]) -> str:
    """Return one result of a cell: an image, a table, or text."""
    if output["output_type"] == "stream":
        return _fenced(_joined(output["text"]), "text")
    if output["output_type"] == "error":
        return _fenced(f"{output['ename']}: {output['evalue']}", "text")
    data = output["data"]
    for kind, start in IMAGES.items():
        if kind in data:
            return f"![output of the cell above]({start}{_joined(data[kind]).replace(chr(10), '')})"
    if "image/svg+xml" in data:
        return f'<div class="output">\n{_joined(data["image/svg+xml"])}\n</div>'
    if "text/html" in data and "<table" in _joined(data["text/html"]):
        html = re.sub(r"<style.*?</style>", "", _joined(data["text/html"]), flags=re.S)
        html = re.sub(r" (?:class|style|border)=(\"[^\"]*\"|'[^']*')", "", html)  # the site has its own style
        html = _HEAD.sub(_one_row, "\n".join(line for line in html.splitlines() if line.strip()))
        return f'<div class="output">\n{html}\n</div>'
    return _fenced(_joined(data.get("text/plain", "")), "text")


def _one_row(match: re.Match[str]) -> str:
    """Join the last two rows of a data frame's head: names of columns, and names of indices below empty cells."""
    upper, lower = _NAME.findall(match[1]), _NAME.findall(match[2])
    if len(upper) != len(lower) or "span=" in match[0] or any(map(all, zip(upper, lower, strict=True))):
        return match[0]
    cells = "".join(f"<th>{one or other}</th>" for one, other in zip(upper, lower, strict=True))
    return f"<tr>{cells}</tr>"


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _fenced(code: str, language: str) -> str:
    """Return a block of code, with a fence that does not occur in it."""
    fence = "```"
    while fence in code:
        fence += "`"
    code = code.strip("\n")
    return f"{fence}{language}\n{code}\n{fence}" if code else ""
