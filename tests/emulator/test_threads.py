"""Collectives of several threads of one process, as those of DataParallel."""

import subprocess
import sys

from migrator.emulator.launch import BOOTSTRAP

PROGRAM = """
import json, os, sys, threading, time, types
sys.modules["npumigrate_emulator.compute"] = types.ModuleType("compute")
from npumigrate_emulator import insight

class Cann:
    emulator_collective_place = staticmethod(lambda where: None)

insight.compute.cann = Cann
insight._find = lambda: -1
dumps = json.dumps
insight.json = types.SimpleNamespace(dumps=lambda call: time.sleep(0.2) or dumps(call))
threads = [threading.Thread(target=insight._on_collective, args=(b"k", b"g", 2, n, 8)) for n in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_what_a_collective_is_stands_before_its_calls(tmp_path):
    environment = {"PYTHONPATH": str(BOOTSTRAP), "NPUMIGRATE_EMULATOR_REPORT": str(tmp_path)}
    subprocess.run([sys.executable, "-S", "-c", PROGRAM], check=True, env=environment)
    (written,) = tmp_path.glob("collectives-*.txt")
    first, *calls = written.read_text().splitlines()
    assert first.startswith("{")
    assert calls == ["0 0", "0 0"]
