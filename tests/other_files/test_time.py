"""The readers take a time that grows as the text does, whatever stands in it a thousand times."""

from __future__ import annotations

import pytest

from migrator.other_files.index import NotParsedError, read
from tests.timing import seconds_of

_SECONDS = 2.0  # each took more than twice as long, and takes less than half of it


@pytest.mark.parametrize(
    ("name", "of_type", "text"),
    [
        ("a.sh", "shell", "".join(f"export A{n}=b\n" for n in range(8000))),
        ("a.sh", "shell", "x --a $A\n" * 8000),
        ("a.sh", "shell", "A=cuda\nx --a $A\n" * 4000),
        ("Makefile", "makefile", "".join(f"B{n}=c\na:\n\tx --a $(B{n})\n" for n in range(4000))),
    ],
    ids=["many exported", "one option", "one variable", "make's variables"],
)
def test_many_of_a_kind(name: str, of_type: str, text: str) -> None:
    assert seconds_of(lambda: read(name, of_type, text)) < _SECONDS
    assert len(read(name, of_type, text).content.settings) >= 4000


def test_a_key_of_many_parts() -> None:
    assert read("a.toml", "toml", 'a."b.c".d = "1.2.3.4"\n').content.settings[0].name == "a.b.c.d"


def test_a_key_of_too_many_parts() -> None:
    def refuse() -> None:
        with pytest.raises(NotParsedError, match="a key has too many parts") as error:
            read("a.toml", "toml", "\n" + "a." * 20_000 + "b = 1\n")
        assert error.value.line == 2

    assert seconds_of(refuse) < _SECONDS


def test_all_values_of_a_variable_reach_all_options() -> None:
    text = "if x; then A=cuda; else A=cpu; fi\na.py --device $A\nb.py --device $A\n"
    options = [item for item in read("a.sh", "shell", text).content.settings if item.kind == "option"]
    assert sorted((item.value or "", item.command) for item in options if item.value) == [
        *(("cpu", 1), ("cpu", 2), ("cuda", 1), ("cuda", 2))
    ]
