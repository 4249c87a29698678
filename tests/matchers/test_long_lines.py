"""Very long lines and large texts take seconds, not minutes: time grows as the text does."""

from __future__ import annotations

import base64
import json
import random

import pytest

from migrator.files.notebook import read_notebook
from migrator.launch import launcher_lines
from migrator.launch.k8s import commands
from migrator.matchers import other_files
from tests.matchers.migrating import migrate
from tests.timing import seconds_of

_DATA = base64.b64encode(random.Random(1).randbytes(60_000)).decode("ascii")
_TEXTS = {
    "base64": f'{{"device": "cuda", "data": "{_DATA}"}}',
    "plain": f"DATA={'A' * 80_000}",
    "dashes": "echo " + "-" * 20_000,
    "blanks": "device" + " " * 20_000 + ";",
    "tabs": "device" + "\t" * 20_000 + ";",
    "brackets": "device:" + "[" * 20_000 + ";",
}
_SECONDS = 1.0  # it takes some milliseconds; it took minutes


@pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS)
def test_lines_of_scripts(text: str) -> None:
    assert seconds_of(lambda: list(other_files.find_lines(text))) < _SECONDS


def test_a_device_beside_data_is_still_found() -> None:
    found = list(other_files.find_lines(_TEXTS["base64"]))
    assert [(each.api, each.column) for each in found] == [("cuda", 13)]


def test_many_lines_that_start_horovod() -> None:
    text = "horovodrun -np 2 python a.py\n" + "x" * 3_000 + "\n"
    found = list(launcher_lines.find_lines(text * 3))
    assert [each.line for each in found] == [1, 3, 5]


@pytest.mark.parametrize(
    "text", ["x " * 20_000, "$a " * 20_000, "{" * 20_000, "$(" * 20_000, "'" * 20_001, "<" * 20_000]
)
def test_a_long_line_of_mpi(text: str) -> None:
    assert seconds_of(lambda: list(launcher_lines.find_lines(f"mpirun -n 2 python a.py {text}"))) < _SECONDS


@pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS)
def test_words_of_a_manifest(text: str) -> None:
    assert seconds_of(lambda: commands.about_gpus([text])) < _SECONDS
    assert seconds_of(lambda: commands.is_launcher("," * 20_000)) < _SECONDS


def test_a_notebook_with_a_line_of_tabs() -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": "\t" * 40_000 + "x!"}
    data = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode("utf-8")
    assert seconds_of(lambda: read_notebook(data, "a.ipynb")) < _SECONDS


def test_a_line_with_many_calls_is_told_by_what_changes_in_it() -> None:
    calls = ", ".join(f"torch.cuda.device({place})" for place in range(300))
    result = migrate(f"import torch\nx = [{calls}]\n")
    fixes = [each.fix for each in result.findings if each.fix and each.fix.operation == "MODIFY"]
    assert {(fix.before, fix.after) for fix in fixes} == {("torch.cuda.device", "torch.npu.device")}
    assert len(fixes) == 300


@pytest.mark.parametrize(
    "code",
    [
        "if torch.cuda.is_available():\n    m = m.cuda()\nelse:\n    m = m.cpu()\n",
        "m = m.cuda(); m = m.to('cuda')\n",
    ],
    ids=["in branches", "in a row"],
)
def test_a_name_that_is_bound_a_thousand_times(code: str) -> None:
    text = "import torch\nm = torch.nn.Linear(1, 1)\n" + code * 1_000
    assert seconds_of(lambda: migrate(text)) < 10 * _SECONDS


_MANY = range(3_000)
_STRINGS = {
    "dictionary": f"d = {{{', '.join(f'{i}: {chr(39)}cuda:{i}{chr(39)}' for i in _MANY)}}}\n",
    "keys": f"d = {{{', '.join(f'{chr(39)}cuda:{i}{chr(39)}: torch.cuda.f' for i in _MANY)}}}\n",
    "list": f"d = [{', '.join(f'{chr(39)}cuda:{i}{chr(39)}' for i in _MANY)}]\n",
    "comparison": f"x in ({', '.join(f'{chr(39)}cuda:{i}{chr(39)}' for i in _MANY)})\n",
    "variables": "".join(f"d{i} = 'cuda:{i}'\n" for i in _MANY),
    "one variable": "".join(f"d = 'cuda:{i}'\nx.to(d)\n" for i in _MANY),
    "returns": "def f(a):\n" + "".join(f"    if a == {i}:\n        return 'cuda:{i}'\n" for i in _MANY),
    "class": "class A:\n" + "".join(f"    a{i} = 'cuda:{i}'\n" for i in _MANY),
}


@pytest.mark.parametrize("code", _STRINGS.values(), ids=_STRINGS)
def test_thousands_of_device_strings(code: str) -> None:
    text = f"import torch\nx = torch.zeros(2)\n{code}"
    assert seconds_of(lambda: migrate(text)) < 1.5 * _SECONDS  # it took half a minute
