"""Files that Python does not run, or reads in another way than they are written, are left alone and named."""

from __future__ import annotations

import json

import pytest

from migrator.core.check import check, no_fix
from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.files.document import document
from migrator.findings.finding import Result
from migrator.project.project import Project

_RULES = Rules(Settings(version="2.6"))
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
    assert result.skipped.startswith("line 3: ")
    assert result.skipped.endswith("to Python: write it in plain letters")


def test_other_letters_elsewhere() -> None:
    text = "import torch\nxₙ = torch.zeros(1).cuda()  # 𝐜uda\ns = '𝐜uda'\n"
    result = check(document(text.encode("utf-8"), "a.py"), _RULES, Project())
    assert result.text == "import torch\nimport torch_npu\n" + text.partition("\n")[2].replace("cuda", "npu")


def test_names_in_other_letters_beside_a_string_that_does_not_end() -> None:
    """What splits a text into tokens fails on it in a way of its own."""
    text = f'{_USE}"""\n𝐭orch.cuda.init()\n'
    assert check(document(text.encode(), "a.py"), _RULES, Project()).skipped.startswith("line 3: not valid")
