"""How far strings that change together are followed; which they are shows 29_together of the snippets."""

from __future__ import annotations

import pytest

from migrator.names import together as engine
from migrator.names.index import ModuleIndex
from tests.timing import grows_evenly

NESTED = """
def wrap(kind="cuda"):
    if kind == "gpu":
        return kind
    kind = (kind, 1)
    return wrap(kind)
"""


def test_containers_that_grow_in_each_other_do_not_keep_the_rest_from_being_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "_MOST_STEPS", 1000)
    index = ModuleIndex(NESTED, {"cuda"})
    found = engine.together(index, index.strings[0])
    assert {each.value for each in found.strings} == {"cuda", "gpu"}


@pytest.mark.parametrize(
    "made",
    [
        'enumerate(["cuda", "cpu"])',
        '[(0, each) for each in ("cuda", "cpu")]',
        '{0: "cuda", **{1: "cpu"}}.items()',
    ],
)
def test_a_class_is_the_same_from_each_of_its_strings(made: str) -> None:
    text = f'for number, kind in {made}:\n    if kind == "gpu":\n        print(number)\n'
    index = ModuleIndex(text, {"cuda", "cpu", "gpu"})
    for string in index.strings:
        assert {each.value for each in engine.together(index, string).strings} == {"cuda", "cpu", "gpu"}


def test_an_attribute_of_a_class_is_looked_at_once() -> None:
    """And not once for each place that names it."""
    again = "def f{0}(a, b):\n    if a.kind == b.kind:\n        return {0}\n\n\n"

    def text(count: int) -> str:
        return "x = 'cuda'\nif x == a.kind:\n    pass\n" + "".join(map(again.format, range(count)))

    def found(given: str) -> None:
        index = ModuleIndex(given, {"cuda"})
        assert engine.together(index, index.strings[0]).values

    assert grows_evenly(found, text, 800)
