"""The readers take a time that grows as the text does, whatever stands in it a thousand times."""

from __future__ import annotations

from typing import Callable

import pytest

from migrator.other_files.index import NotParsedError, read
from tests.timing import grows_evenly


@pytest.mark.parametrize(
    ("name", "of_type", "make"),
    [
        ("a.sh", "shell", lambda count: "".join(f"export A{n}=b\n" for n in range(2 * count))),
        ("a.sh", "shell", lambda count: "x --a $A\n" * 2 * count),
        ("a.sh", "shell", lambda count: "A=cuda\nx --a $A\n" * count),
        ("Makefile", "makefile", lambda count: "".join(_rule(n) for n in range(count))),
    ],
    ids=["many exported", "one option", "one variable", "make's variables"],
)
def test_many_of_a_kind(name: str, of_type: str, make: Callable[[int], str]) -> None:
    assert grows_evenly(lambda text: read(name, of_type, text), make, 4000)
    assert len(read(name, of_type, make(4000)).content.settings) >= 4000


def _rule(number: int) -> str:
    return f"B{number}=c\na:\n\tx --a $(B{number})\n"


def test_a_key_of_many_parts() -> None:
    assert read("a.toml", "toml", 'a."b.c".d = "1.2.3.4"\n').content.settings[0].name == "a.b.c.d"


def test_a_key_of_too_many_parts() -> None:
    def refuse(text: str) -> None:
        with pytest.raises(NotParsedError, match="a key has too many parts") as error:
            read("a.toml", "toml", text)
        assert error.value.line == 2

    assert grows_evenly(refuse, lambda count: "\n" + "a." * count + "b = 1\n", 20_000)


def test_all_values_of_a_variable_reach_all_options() -> None:
    text = "if x; then A=cuda; else A=cpu; fi\na.py --device $A\nb.py --device $A\n"
    options = [item for item in read("a.sh", "shell", text).content.settings if item.kind == "option"]
    assert sorted((item.value or "", item.command) for item in options if item.value) == [
        *(("cpu", 1), ("cpu", 2), ("cuda", 1), ("cuda", 2))
    ]
