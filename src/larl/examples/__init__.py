"""Example files that are installed with the package. `larl examples` lists and copies them."""

from importlib.resources import files

from larl._core.validation import InvalidValue


def example_names() -> list[str]:
    """Return the names of the examples, without `.toml`."""
    return sorted(each.name.removesuffix(".toml") for each in files(__name__).iterdir() if each.name.endswith(".toml"))


def example_text(name: str) -> str:
    """Return the text of an example."""
    if name.removesuffix(".toml") not in example_names():
        raise InvalidValue("larl examples", "name", name, " or ".join(example_names()))
    return files(__name__).joinpath(f"{name.removesuffix('.toml')}.toml").read_text(encoding="utf-8")


def first_comment(name: str) -> str:
    """Return the description of an example: its first line up to the first full stop."""
    return example_text(name).splitlines()[0].lstrip("# ").partition(".")[0]
