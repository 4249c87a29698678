"""A project of many programs on Horovod: each of its files is read once, however many of them reach it."""

from __future__ import annotations

from collections import Counter

import pytest

from migrator.convert.horovod import convert as horovod
from migrator.names import outline
from migrator.names.tree import parse
from migrator.names.whole_file import WholeFile

_ENTRY = """import horovod.torch as hvd
import torch
import helpers
hvd.init()
torch.cuda.set_device(hvd.local_rank())
"""


def test_each_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"example{number}.py": _ENTRY for number in range(5)}
    files["helpers.py"] = "import common\n"
    files["common.py"] = "import torch\n"
    parsed: Counter[str] = Counter()
    loaded: Counter[str] = Counter()
    monkeypatch.setattr(outline, "parse", lambda text: parsed.update([text]) or parse(text))
    monkeypatch.setattr(
        horovod, "WholeFile", lambda name, text: loaded.update([name]) or WholeFile(name, text)
    )
    result = horovod.convert([*files][:5], files, files.get, (2, 6, 0))
    assert sorted(result) == sorted(files)[1:6]
    assert all("horovod" not in one.text for one in result.values())
    assert loaded == dict.fromkeys(files, 1)
    assert parsed == {_ENTRY: 5, files["helpers.py"]: 1, files["common.py"]: 1}
