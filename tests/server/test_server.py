from __future__ import annotations

from lsprotocol import types

TRAIN = """\
import torch

x = torch.zeros(2).cuda()
torch.cuda.synchronize()
"""


def test_quick(editor):
    result = editor.start({"version": "2.6"})
    print(result)
    print(editor.open("train.py", TRAIN))
    print(editor.hover("train.py", 3, 13))
    print(editor.hover("train.py", 2, 20))
    for a in editor.actions("train.py", 3): print(a)
    print(editor.leave())
    assert 0
