"""Links between pages: in the repository they lead to files, on the site to pages."""

import posixpath
import re

# Files outside docs/ that the site shows, and their pages.
PAGES = {"CONTRIBUTING.md": "contributing.md", "DESIGN.md": "design.md", "CHANGELOG.md": "changelog.md"}
EXAMPLES = "src/larl/examples/"  # its TOML files are sections of examples.md
_LINK = re.compile(r"(\]\()(?!\w+:|#)([^)\s#]*)(#[^)\s]*)?\)")


def rewrite(markdown: str, file: str, page: str) -> str:
    """Return the text of a file of the repository with its links changed to those of the page.

    Parameters
    ----------
    markdown : str
        Text of the file.
    file, page : str
        Path of the file in the repository, and of its page below docs/.
    """

    def replace(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), match[2]))
        section = match[3] or ""
        if target in PAGES:
            target = PAGES[target]
        elif target == "README.md":
            target = "index.md"
        elif target.startswith(EXAMPLES):
            target, section = "examples.md", "#" + target.removeprefix(EXAMPLES).replace(".", "")
        elif target.startswith("docs/notebooks/") and target.endswith(".ipynb"):
            target = target.removeprefix("docs/").removesuffix(".ipynb") + ".md"
        else:
            target = target.removeprefix("docs/")
        return f"{match[1]}{posixpath.relpath(target, posixpath.dirname(page) or '.')}{section})"

    return _LINK.sub(replace, markdown)
