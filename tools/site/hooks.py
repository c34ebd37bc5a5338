"""Hooks of the documentation site: pages made at build time, links, and a check that no page needs the network."""

import re
from logging import getLogger
from pathlib import Path
from typing import Any

from links import EXAMPLES, PAGES, rewrite
from mkdocs.structure.files import File, Files
from notebook_pages import to_markdown
from rest_reference import page as rest_page
from typeset import typeset

ROOT = Path(__file__).parents[2]
log = getLogger("mkdocs.plugins.site")
# What a browser loads by itself: scripts, styles, images, frames, fonts, and addresses in styles.
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*?\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)"""
)
# Mathematics such as z̃_{t−s} or ‖x‖_V: for Python-Markdown the marks are no letters, and `_` would start emphasis.
_SUBSCRIPT = re.compile(r"(?<=[\u0300-\u036f\u20d0-\u20ff‖])_")
_CODE = re.compile(r"(^```.*?^```|^ {4}.*?$|`[^`\n]+`)", re.S | re.M)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that have no file in docs/: REST reference, example files, files of the root, notebooks."""
    from larl.service.app import make_api

    made = {"rest.md": rest_page(make_api().openapi()), "examples.md": _examples()}
    made |= {page: (ROOT / file).read_text(encoding="utf-8") for file, page in PAGES.items()}
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        text = Path(notebook.abs_src_path).read_text(encoding="utf-8")
        made[notebook.src_uri.removesuffix(".ipynb") + ".md"] = to_markdown(text, Path(notebook.src_uri).name)
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Change links between files to links between pages, and protect subscripts."""
    sources = {page: file for file, page in PAGES.items()}
    uri = page.file.src_uri
    markdown = rewrite(markdown, sources.get(uri, f"docs/{uri}"), uri)
    if page.parent is None:  # no other page to list beside it
        page.meta["hide"] = ["navigation"] + ["toc"] * ("\n## " not in markdown)
    parts = _CODE.split(markdown)  # every second part is code
    return "".join(_language(part) if i % 2 else _SUBSCRIPT.sub(r"\\_", part) for i, part in enumerate(parts))


def on_page_content(html: str, **_: Any) -> str:
    """Set formulas and tables."""
    return typeset(html)


def on_post_build(config: Any) -> None:
    """Warn of anything that a page would load from another server; in strict mode the build fails."""
    for path in sorted(Path(config.site_dir).rglob("*")):
        if path.suffix in {".html", ".css"}:
            for match in _LOADED.finditer(path.read_text(encoding="utf-8")):
                address = next(filter(None, match.groups()))
                log.warning("%s loads %s: pages must not need the network", path.relative_to(config.site_dir), address)


def _language(code: str) -> str:
    """Call fenced text "output", so that only indented blocks, which are formulas, are "text" in HTML."""
    return re.sub(r"\A```(text)?\n", "```output\n", code)


def _examples() -> str:
    """Return a page with the files that `larl examples` writes."""
    parts = ["# Example files", "`larl examples study` and `larl examples rehearsal` write these files."]
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / EXAMPLES).glob("*.toml"))}
    parts += [f"## {name}\n\n```toml\n{text.strip()}\n```" for name, text in files.items()]
    return "\n\n".join(parts) + "\n"
