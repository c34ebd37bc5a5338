"""Line numbers of tables and keys in TOML files."""

import tomllib

import pytest

from larl._core.toml import MAX_DEPTH, line_of, lines, too_deep_line

TEXT = '''# a comment with [brackets] and a = "sign"
horizon = 20 # with = another
a.b . "c d" = 1
list = [
  1, # one, [two]
  [2,
   3],
]
text = """
[not.a.table]
key = "no" \\""" still
"""
raw = \'\'\'
x = 1
\'\'\'

[worlds."k = 1, [x]"]
start = { mean = 0.0, "s d" = [1.0, 2.0], inner = { deep = "}" } }
empty = {}
date = 1979-05-27T07:32:00Z

[ policies . 'its'.grid ]
s = [1, 5]
alpha=[0.5,
 1.0]

[[many]]
x = 1
[[many]]
y = '#'
z = 2
'''


def test_lines_of_tables_keys_and_elements():
    numbers = lines(TEXT)
    row = {text: number for number, text in enumerate(TEXT.splitlines(), 1)}
    world = ("worlds", "k = 1, [x]")
    assert numbers["horizon",] == 2
    assert numbers["a", "b", "c d"] == numbers["a",] == 3
    assert numbers["list", "[0]"] == 5
    assert numbers["list", "[1]"] == 6
    assert numbers["list", "[1]", "[1]"] == 7
    assert numbers["text",] == 9
    assert numbers["raw",] == row["raw = '''"]
    assert numbers[world] == row['[worlds."k = 1, [x]"]']
    for path in (("start",), ("start", "mean"), ("start", "s d", "[1]"), ("start", "inner", "deep")):
        assert numbers[(*world, *path)] == numbers[world] + 1
    assert numbers[(*world, "date")] == numbers[world] + 3
    assert numbers["policies", "its", "grid"] == row["[ policies . 'its'.grid ]"]
    assert numbers["policies", "its", "grid", "alpha", "[1]"] == row[" 1.0]"]
    assert numbers["many", "z"] == row["z = 2"]


def test_paths_are_those_of_tomllib():
    numbers = set(lines(TEXT))

    def keys(value, path):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield (*path, key)
                yield from keys(inner, (*path, key))
        elif isinstance(value, list) and path[:1] != ("many",):
            for number, inner in enumerate(value):
                yield (*path, f"[{number}]")
                yield from keys(inner, (*path, f"[{number}]"))

    extra = {("many", "x"), ("many", "y"), ("many", "z")}
    assert numbers == set(keys(tomllib.loads(TEXT), ())) | extra


@pytest.mark.parametrize(
    ("path", "line"), [((), 1), (("nothing",), 1), (("list", "[7]"), 4), (("worlds", "k = 1, [x]", "mu"), 17)]
)
def test_missing_path_has_line_of_enclosing_table(path, line):
    assert line_of(lines(TEXT), path) == line


def test_windows_line_endings():
    assert lines('a = 1\r\n[t]\r\nb = "x"\r\nc = [1,\r\n2]\r\n')["t", "c", "[1]"] == 5


@pytest.mark.parametrize("opened", ["x = " + "[", "x = " + "{a=", "a.", "[a.", '"b".'])
def test_line_of_nesting_that_is_too_deep(opened: str) -> None:
    start, repeated = (opened[:4], opened[4:]) if opened.startswith("x") else ("", opened.removeprefix("["))
    for depth in (MAX_DEPTH + 2, 100_000):
        assert too_deep_line(f"# one\n\n{start}{repeated * depth}") == 3


def test_brackets_and_dots_that_do_not_nest_are_not_counted() -> None:
    many = 10 * MAX_DEPTH
    numbers, text, comment = f"x = [{'1.5, ' * many}]", f'y = "{"[." * many}"', f"# {'[.' * many}"
    tables = "\n".join(f"[a.b{i}]" for i in range(many))
    document = "\n".join([numbers, text, comment, tables])
    assert tomllib.loads(document)
    assert too_deep_line(document) is None


def test_lines_of_a_large_file() -> None:
    count = 20_000
    found = lines("".join(f"key{i} = [{i},\n {i}]\n" for i in range(count)))
    assert found[f"key{count - 1}", "[1]"] == 2 * count
