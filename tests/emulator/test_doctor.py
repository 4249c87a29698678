"""`npumigrate doctor` where the emulator is the machine."""

from __future__ import annotations

import json


def test_the_emulated_machine_is_ready(emulate):
    variables = {"ASCEND_RT_VISIBLE_DEVICES": "0,3"}
    done = emulate("python", "-m", "migrator", "doctor", "--json", options=("--devices", "2"), env=variables)
    content = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert [one["what"] for one in content["faults"] if one["severity"] == "error"] == [
        "ASCEND_RT_VISIBLE_DEVICES=0,3: there is no NPU 3"
    ]
    assert (content["npus"], content["emulated"]) == ([0, 1], True)
    assert content["packages"]["torch_npu"].startswith(content["packages"]["torch"].partition("+")[0])
