"""Files that Python does not run, or reads in another way than they are written, are left alone and named."""

from __future__ import annotations

import json
import re
import sys
from unicodedata import normalize

import pytest

from migrator.core.check import check, no_fix
from migrator.core.readable import check_compiles
from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.files.document import document
from migrator.findings.finding import Result
from migrator.project.project import Project
from tests.checking import load_pack

_RULES = Rules(Settings(version="2.6"), load_pack)
_USE = "import torch\nx = torch.zeros(1).cuda()\n"
_REFUSED = {
    "a misplaced __future__": f"{_USE}from __future__ import annotations\n",
    "return": f"{_USE}return x\n",
    "await": f"{_USE}await x\n",
    "break": f"{_USE}break\n",
    "two arguments of a name": f"{_USE}def f(a, a):\n    pass\n",
    "nonlocal": f"{_USE}nonlocal x\n",
    "yield in a class": f"{_USE}class A:\n    yield x\n",
}


@pytest.mark.parametrize("admitted", [True, False], ids=["migrate", "lint"])
@pytest.mark.parametrize("text", _REFUSED.values(), ids=_REFUSED)
def test_what_python_does_not_compile(text: str, admitted: bool) -> None:
    item = document(text.encode("utf-8"), "a.py")
    result = (
        check(item, _RULES, Project()) if admitted else check(item, _RULES, Project(), no_fix, write=False)
    )
    assert result.text is None
    assert result.findings == ()
    assert "not valid Python" in result.skipped
    assert [trouble.line for trouble in result.syntax] != [0]


def _check_notebook(*sources: str) -> Result:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
    data = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode("utf-8")
    return check(document(data, "a.ipynb"), _RULES, Project())


@pytest.mark.parametrize(
    "sources",
    [
        ["import torch\nawait torch.f().cuda()\n"],
        ["!pip install x", "from __future__ import division\n\nimport torch\n", "torch.f().cuda()"],
    ],
    ids=["await", "a __future__ on top of a cell"],
)
def test_what_a_notebook_may(sources: list[str]) -> None:
    result = _check_notebook(*sources)
    assert result.skipped == ""
    assert result.text is not None
    assert "torch.f().npu()" in result.text


def test_what_a_cell_may_not() -> None:
    result = _check_notebook("import torch\n", "x = 1\n", "x = x.cuda()\nfrom __future__ import division")
    assert result.text is None
    # The line in the text: two cells of two lines are above, each with the line that marks its end.
    assert [trouble.line for trouble in result.syntax] == [8]


@pytest.mark.parametrize("line", ["torch.𝐜uda.synchronize()", "𝐭orch.zeros(1)", "x.𝗰uda()"])
def test_names_in_other_letters(line: str) -> None:
    result = check(
        document(f"import torch\nx = torch.zeros(1).cuda()\n{line}\n".encode(), "a.py"), _RULES, Project()
    )
    assert result.text is None
    odd = next(name for name in re.findall(r"\w+", line) if not name.isascii())
    meant = normalize("NFKC", odd)
    assert result.skipped == f"line 3: {odd} is {meant} to Python: spell it in plain letters"


def test_other_letters_elsewhere() -> None:
    text = "import torch\nxₙ = torch.zeros(1).cuda()  # 𝐜uda\ns = '𝐜uda'\n"
    result = check(document(text.encode("utf-8"), "a.py"), _RULES, Project())
    assert result.text == "import torch\nimport torch_npu\n" + text.partition("\n")[2].replace("cuda", "npu")


def test_names_in_other_letters_beside_a_string_that_does_not_end() -> None:
    """What splits a text into tokens fails on it in a way of its own."""
    text = f'{_USE}"""\n𝐭orch.cuda.init()\n'
    assert check(document(text.encode(), "a.py"), _RULES, Project()).skipped.startswith("line 3: not valid")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="no annotation of any file may bind a name")
def test_no_future_of_ours_holds_for_other_files() -> None:
    check_compiles("def f(x: (y := 1)):\n    pass\n")  # with ours no annotation may bind a name


def _compiled_sizes(text: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long the texts are that are compiled, one after the other, where two lines are a large file."""
    sizes: list[int] = []

    def compiled(part: str, flags: int = 0) -> None:
        sizes.append(len(part))
        compile(part, "<unknown>", "exec", flags, dont_inherit=True)

    monkeypatch.setattr("migrator.core.readable.LARGE", 12)
    monkeypatch.setattr("migrator.core.readable._compiled", compiled)
    monkeypatch.setattr("migrator.names.large._PIECE", 1)
    check_compiles(text)
    return sizes


def test_a_large_file_is_compiled_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _compiled_sizes("x = 1\ny = 2\n", monkeypatch) == [12]
    assert _compiled_sizes("x = 1\ny = 2\nz = 3\n", monkeypatch) == [6, 6, 6]
    whole = "from __future__ import annotations\nx = 1\n"  # which holds for what is below it
    assert _compiled_sizes(whole, monkeypatch) == [len(whole)]


def test_the_place_of_an_error_is_that_in_the_whole_of_a_large_file(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SyntaxError) as raised:
        _compiled_sizes("x = 1\ny = 2\nz = 3\nreturn\n", monkeypatch)
    assert raised.value.lineno == 4
