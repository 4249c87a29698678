"""The tables against the torch_npu that is installed here, on emulated NPUs.

    python -m tools.releases.live

Exit status: 0 no difference; 1 differences, one a line; 2 there is nothing to compare with.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from migrator.api_support import npu_names, tables, torch_names
from migrator.api_support.versions import TorchVersion, UnknownVersion, resolve

_PROGRAM = Path(__file__).with_name("live_program.py")
_PATIENCE = 600  # seconds


class CannotCompare(Exception):  # noqa: N818 - it says what is wrong
    """There is nothing to compare with here; the message says why, in one line."""


def differences(say: Callable[[str], None]) -> list[str]:
    """A line on each name and kernel on which the tables and the installed torch_npu do not agree.

    torch is imported in a process of its own. ``say`` gets a line where the
    emulator has to be built first. Raises CannotCompare where torch_npu or the
    emulator is not installed, or no release in the tables is the installed one.
    """
    try:
        from migrator.emulator.build import build
        from migrator.emulator.installed import EmulatorError, look, version_of
        from migrator.emulator.launch import Machine, environment
    except ImportError as error:  # the emulator needs Linux
        raise CannotCompare(f"the emulator cannot run here: {error}") from None
    release = version_of("torch_npu")
    if release is None:
        raise CannotCompare("torch_npu is not installed here")
    try:
        version = resolve(release)
        installed = look()
        env = environment(Machine(devices=1), build(installed, say), installed, os.environ)
    except (EmulatorError, UnknownVersion) as error:
        raise CannotCompare(str(error)) from None
    answer = subprocess.run(
        [sys.executable, str(_PROGRAM)],
        input=json.dumps(_expected(version)),
        env=env,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    last = answer.stdout.rstrip().rpartition("\n")[2]
    if answer.returncode or not last.startswith("["):
        reason = (answer.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise CannotCompare(f"torch_npu could not be looked into: {reason}")
    found: list[str] = json.loads(last)
    return found


def _expected(version: TorchVersion) -> dict[str, object]:
    there, absent = set(), set()
    for name in npu_names.names():
        found = npu_names.look_up(name, version)
        if found and found.npu:
            there.add(found.npu)
        elif not found or found.kind == "import" or "executed" in found.source:
            continue  # executed: tried by a person, such a name may be there and raise
        elif name.startswith("torch.cuda."):
            absent.add(re.sub(r"^torch\.cuda\b", "torch.npu", name))
    kernels = tables.rows_at("kernels", version.tuple)
    return {
        "torch_npu": version.torch_npu,
        "torch": [name for name in torch_names.listed() if torch_names.of_version(version.text).absent(name)],
        "there": sorted(there),
        "absent": sorted(absent - there),
        "own": [row[0] for row in tables.rows_at("custom_ops", version.tuple)],
        "operators": [(row[0], row[3]) for row in kernels if not row[0].endswith(".*")],
    }


def main() -> int:
    """Print the differences."""
    try:
        found = differences(lambda line: print(line, file=sys.stderr))
    except CannotCompare as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(found) or "the installed torch_npu has the names and kernels listed in the tables")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
