"""The files of the page are complete, have the right types and request nothing from other addresses."""

import re
from pathlib import Path

import pytest

from larl.service.http.routes.static import FOLDER
from tests.service.study_client import service_client

FILES = sorted(FOLDER.iterdir())


def test_every_file_is_served_without_a_token(tmp_path: Path) -> None:
    kinds = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    with service_client(tmp_path) as client:
        del client.headers["Authorization"]
        for file in FILES:
            found = client.get("/" if file.name == "index.html" else f"/{file.name}")
            assert found.content == file.read_bytes()
            assert found.headers["content-type"].startswith(kinds[file.suffix])
            assert "script-src 'self'" in found.headers["content-security-policy"]
            assert "unsafe" not in found.headers["content-security-policy"]
        assert client.head("/").status_code == 200
        assert client.get("/nothing.js").status_code == 404
        assert "/page.js" not in client.get("/openapi.json").json()["paths"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_files_have_no_other_addresses_and_no_unsafe_code(file: Path) -> None:
    text = file.read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//[a-z]+\.[a-z]", text)
    assert not re.search(r"innerHTML|insertAdjacentHTML|eval\(|new Function|document\.write", text)
    if file.suffix == ".html":
        assert not re.search(r"\sstyle=|\son\w+=|<style|<script(?![^>]*src=)", text)
    assert len(text.splitlines()) <= 300


def luminance(colour: str) -> float:
    """Return the relative luminance (WCAG 2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours (WCAG 2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_has_enough_contrast(scheme: int) -> None:
    blocks = re.findall(r":root \{(.*?)\}", (FOLDER / "page.css").read_text(), re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[scheme]))
    assert len(colours) > 25
    for name, colour in colours.items():
        if name in ("paper", "panel", "line", "hover", "on-main") or name.endswith("-back"):
            continue
        backgrounds = {colours["panel"]} | (
            {colours["paper"], colours["hover"]} if name in ("ink", "muted", "link") else set()
        )
        backgrounds |= {colours[f"{name}-back"]} if f"{name}-back" in colours else set()
        assert min(contrast(colour, each) for each in backgrounds) >= 4.5, name
    assert contrast(colours["on-main"], colours["main"]) >= 4.5
