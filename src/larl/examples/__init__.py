"""Example files that are installed with the package: `larl examples` lists them and writes copies."""

from importlib.resources import files

from larl._core.validation import InvalidValue


def example_names() -> list[str]:
    """The names of the examples."""
    return sorted(each.name.removesuffix(".toml") for each in files(__name__).iterdir() if each.name.endswith(".toml"))


def example_text(name: str) -> str:
    """The text of an example."""
    if name.removesuffix(".toml") not in example_names():
        raise InvalidValue("larl examples", "name", name, " or ".join(example_names()))
    return files(__name__).joinpath(f"{name.removesuffix('.toml')}.toml").read_text(encoding="utf-8")


def first_comment(name: str) -> str:
    """What an example is, as its first line says."""
    return example_text(name).splitlines()[0].lstrip("# ").partition(".")[0]
