"""Very long lines and large texts take seconds, not minutes: time grows as the text does."""

from __future__ import annotations

import base64
import json
import random
from typing import Callable

import pytest

from migrator.files.notebook import read_notebook
from migrator.launch import mpi
from migrator.launch.k8s import pods
from migrator.matchers import other_files
from tests.matchers.migrating import migrate
from tests.timing import grows_evenly

_DATA = base64.b64encode(random.Random(1).randbytes(60_000)).decode("ascii")
_SIZE = 20_000
_TEXTS: dict[str, Callable[[int], str]] = {
    "base64": lambda size: f'{{"device": "cuda", "data": "{_DATA[: 4 * size]}"}}',
    "plain": lambda size: f"DATA={'AAAA' * size}",
    "dashes": lambda size: "echo " + "-" * size,
    "blanks": lambda size: "device" + " " * size + ";",
    "tabs": lambda size: "device" + "\t" * size + ";",
    "brackets": lambda size: "device:" + "[" * size + ";",
}


@pytest.mark.parametrize("make", _TEXTS.values(), ids=_TEXTS)
def test_lines_of_scripts(make: Callable[[int], str]) -> None:
    assert grows_evenly(lambda text: list(other_files.find_lines(text)), make, _SIZE)


def test_a_device_beside_data_is_still_found() -> None:
    found = list(other_files.find_lines(_TEXTS["base64"](_SIZE)))
    assert [(each.api, each.column) for each in found] == [("cuda", 13)]


def test_many_lines_that_start_horovod() -> None:
    text = "horovodrun -np 2 python a.py\n" + "x" * 3_000 + "\n"
    found = list(mpi.find_lines(text * 3))
    assert [each.line for each in found] == [1, 3, 5]


@pytest.mark.parametrize("word", ["x ", "$a ", "{", "$(", "'", "<"])
def test_a_long_line_of_mpi(word: str) -> None:
    def line(size: int) -> str:
        return f"mpirun -n 2 python a.py {word * (size | 1)}"

    assert grows_evenly(lambda text: list(mpi.find_lines(text)), line, _SIZE)


@pytest.mark.parametrize("make", _TEXTS.values(), ids=_TEXTS)
def test_words_of_a_manifest(make: Callable[[int], str]) -> None:
    assert grows_evenly(pods.about_gpus, make, _SIZE)


def test_a_manifest_with_a_word_of_commas() -> None:
    assert grows_evenly(pods._LAUNCHER.search, ",".__mul__, _SIZE)


def test_a_notebook_with_a_line_of_tabs() -> None:
    def notebook(size: int) -> bytes:
        cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": "\t" * size + "x!"}
        content = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        return json.dumps(content).encode("utf-8")

    assert grows_evenly(lambda data: read_notebook(data, "a.ipynb"), notebook, 40_000)


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
    begin = "import torch\nm = torch.nn.Linear(1, 1)\n"
    assert grows_evenly(migrate, lambda count: begin + code * count, 1_000)


# What stands before many parts, a part, what stands between two, and behind all.
_STRINGS = {
    "dictionary": ("d = {", "{i}: 'cuda:{i}'", ", ", "}"),
    "keys": ("d = {", "'cuda:{i}': torch.cuda.f", ", ", "}"),
    "list": ("d = [", "'cuda:{i}'", ", ", "]"),
    "comparison": ("x in (", "'cuda:{i}'", ", ", ")"),
    "variables": ("", "d{i} = 'cuda:{i}'", "\n", ""),
    "one variable": ("", "d = 'cuda:{i}'\nx.to(d)", "\n", ""),
    "returns": ("def f(a):\n", "    if a == {i}:\n        return 'cuda:{i}'", "\n", ""),
    "class": ("class A:\n", "    a{i} = 'cuda:{i}'", "\n", ""),
}


@pytest.mark.parametrize(("begin", "part", "between", "end"), _STRINGS.values(), ids=_STRINGS)
def test_thousands_of_device_strings(begin: str, part: str, between: str, end: str) -> None:
    def program(count: int) -> str:
        parts = between.join(part.replace("{i}", str(number)) for number in range(count))
        return f"import torch\nx = torch.zeros(2)\n{begin}{parts}{end}\n"

    assert grows_evenly(migrate, program, 3_000)
