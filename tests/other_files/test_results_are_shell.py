"""What becomes of a script is a script: bash reads it, and shellcheck finds nothing new."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from migrator.core.examples import migrated
from migrator.files.document import file_type
from migrator.matchers.packs import load_all

EXAMPLES = [
    (rule.code, example["before"], example["after"])
    for rule in load_all(())
    for example in rule.examples
    if "before" in example and file_type(example.get("file", "a.py")) == "shell"
]
SCRIPT = """\
#!/bin/bash
#SBATCH --gres=gpu:8
set -euo pipefail
DEVICE=${DEVICE:-cuda}
ARGS=(--device "$DEVICE" --dist-backend nccl)
if [ -z "${CUDA_VISIBLE_DEVICES+x}" ]; then
  export CUDA_VISIBLE_DEVICES=0,1
else
  unset NCCL_DEBUG
fi
env -u CUDA_LAUNCH_BLOCKING NCCL_DEBUG=INFO python -u train.py "${ARGS[@]}" \\
  --device="cuda:0" 2>&1 | tee "log $CUDA_VISIBLE_DEVICES"
bash -c 'CUDA_VISIBLE_DEVICES=0 python train.py --device cuda'
for gpu in 0 1; do CUDA_VISIBLE_DEVICES=$gpu python train.py --device "cuda:$gpu" & done
nvidia-smi
cat <<EOF
on $CUDA_VISIBLE_DEVICES
EOF
"""


def warnings(text: str) -> Counter[int]:
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [str(shutil.which("shellcheck", path=beside)), "-s", "bash", "-f", "json", "-"]
    answer = subprocess.run(command, input=text, capture_output=True, text=True, timeout=900)
    return Counter(item["code"] for item in json.loads(answer.stdout))


def check(before: str, after: str) -> None:
    answer = subprocess.run(["bash", "-n"], input=after, capture_output=True, text=True, timeout=900)
    assert answer.stderr == ""
    assert warnings(after) <= warnings(before)


@pytest.mark.parametrize(("code", "before", "after"), EXAMPLES)
def test_an_example_stays_a_script(code: str, before: str, after: str) -> None:
    assert code
    check(before, after)


def test_all_rules_leave_a_script() -> None:
    after = migrated(SCRIPT, "2.6", False, name="run.sh").text
    assert after is not None
    check(SCRIPT, after)
    assert "CUDA" not in after
    assert "cuda" not in after
    assert "nccl" not in after
    assert migrated(after, "2.6", False, name="run.sh").text is None


def test_what_only_looks_like_cuda_stays() -> None:
    script = """\
git checkout cuda
git push --set-upstream origin nccl
conda install -c nvidia cuda
cd /usr/local/cuda && ls lib/nccl
echo "Run with --device cuda" --device cuda
ssh gpu-node-1 hostname
MY_CUDA_VISIBLE_DEVICES=0
cuda=1
python train.py --name cuda --branch=nccl --output-device-map cuda.json
rsync -a --exclude cuda x y
"""
    assert migrated(script, "2.6", False, name="run.sh").text is None
