"""The time of a file grows with its size: to look for a name does not go through the whole file again."""

from __future__ import annotations

import pytest

from migrator.core.check import check
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.files.document import document
from migrator.names import index
from migrator.names.index import ModuleIndex
from migrator.project.project import Project
from tests.timing import grows_evenly

FUNCTION = '\n\ndef step_{number}(x):\n    return x.to("cuda")\n'


def test_many_functions() -> None:
    rules = rules_for(Settings(version="2.6"))

    def text(count: int) -> bytes:
        return ("import torch\n" + "".join(FUNCTION.format(number=each) for each in range(count))).encode()

    def found(data: bytes) -> None:
        assert check(document(data, "train.py"), rules, Project(), write=False).findings

    assert grows_evenly(found, text, 6000)


@pytest.mark.parametrize("most", [500, 0], ids=["searched", "listed"])
def test_where_a_name_is_read(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_MOST_SEARCHED", most)
    body = "    \xe9ab = ab; ab = 1\n    print(ba, ab_, ab)\n"
    text = f"\xe9 = 1\nab = ba = 2\n\n\ndef a(b=ab):\n{body}\n\nprint(ab, ba); ba\n"
    whole = ModuleIndex(text, ())

    def lines(name: str) -> list[int]:
        return [use.lineno for use in whole.uses(name, whole.module_scope)]

    assert (lines("ab"), lines("ba"), lines("\xe9")) == ([5, 10], [10, 10, 7], [])
