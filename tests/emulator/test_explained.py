"""What the emulator refuses, `npumigrate explain` explains: its errors are CANN's and torch_npu's."""

from __future__ import annotations

import re

from tests.explain import explain_text

# Each statement fails; behind it the entries that may explain that.
REFUSED = {
    'torch.mm(*[torch.ones(2, 2, dtype=torch.float64, device="npu")] * 2)': "EZ1001",
    'torch.bmm(torch.ones(1, 2, 2, device="npu"), torch.ones(1, 2, 2, device="npu").half())': "EZ1001",
    'torch.ones(2, device="npu").lerp_(torch.ones(3, 2, device="npu"), 0.5)': "EZ1001",
    'torch.ones([1] * 9, device="npu").transpose(0, 1).clone()': "EZ1001",
    'torch.ones(1, device="npu:9")': "107001",
    'torch.empty(1 << 40, device="npu")': "npu-out-of-memory",
    'torch.ones(2, device="npu") + torch.ones(2)': "not-on-same-device",
    'torch.ones(2, device="npu").numpy()': "numpy-of-npu",
    'torch.ones(2, device="cuda")': "not-compiled-with-cuda",
    'torch_npu.npu_ffn(*[torch.ones(2, 2, device="npu").half()] * 3, "nothing")': "emulator-lacks-operator",
    'torch_npu.npu_prefetch(torch.ones(2, device="npu"), None, 0)': "operator-argument-refused",
    'torch_npu.npu_convert_weight_to_int4pack(torch.ones(8, device="npu"))': "operator-argument-refused",
}
PROGRAM = """
import sys, traceback
import torch, torch_npu

for number, statement in enumerate(sys.argv[1:]):
    try:
        exec(compile(statement, "train.py", "exec"))
    except Exception:
        print(f"== {number}")
        traceback.print_exc(file=sys.stdout)
"""


def test_each_refusal_is_explained(emulate, tmp_path) -> None:
    (tmp_path / "refused.py").write_text(PROGRAM)
    done = emulate("python", "refused.py", *REFUSED, cwd=tmp_path, options=("--devices", "2"))
    texts = dict(re.findall(r"== (\d+)\n([^\0]*?)(?=== \d|\Z)", done.stdout))
    assert len(texts) == len(REFUSED), done.stdout + done.stderr
    found = {}
    for statement, text in zip(REFUSED, texts.values()):
        said = explain_text(text)
        found[statement] = said and said.entry and said.entry.code
    assert found == REFUSED, done.stdout
