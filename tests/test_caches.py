"""What the server keeps between runs is bounded, found by plain values, and its size stands beside it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

BOUND = {"lru_cache": "maxsize", "cache_data": "max_entries", "cache_resource": "max_entries"}
PLAIN = {"str", "int", "float", "bool", "None"}


def cached() -> Iterator[tuple[Path, ast.FunctionDef, ast.expr, str]]:
    """Every function of the app that has a cache, with the decorator and its name."""
    for folder in ("core", "ui", "pages"):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for node in (each for each in tree if isinstance(each, ast.FunctionDef)):
                for decorator in node.decorator_list:
                    called = decorator.func if isinstance(decorator, ast.Call) else decorator
                    name = getattr(called, "attr", getattr(called, "id", ""))
                    if "cache" in name and name != "cached_property":
                        yield path, node, decorator, name


@pytest.mark.parametrize(
    ("path", "function", "decorator", "name"), list(cached()), ids=lambda part: getattr(part, "name", "")
)
def test_a_cache_is_bounded_and_says_what_it_may_hold(
    path: Path, function: ast.FunctionDef, decorator: ast.expr, name: str
) -> None:
    arguments = [*function.args.args, *function.args.kwonlyargs]
    assert name in BOUND, "functools.cache has no bound"
    if arguments:
        given = decorator.keywords if isinstance(decorator, ast.Call) else []
        bounds = {word.arg: word.value for word in given}
        assert isinstance(ast.literal_eval(bounds[BOUND[name]]), int)
        for argument in arguments:
            words = ast.unparse(argument.annotation or ast.Constant("no type")).replace("|", " ").split()
            assert set(words) <= PLAIN, f"{argument.arg} is no plain value"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert "#" in lines[decorator.lineno - 1] or lines[decorator.lineno - 2].startswith("#")
