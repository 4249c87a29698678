"""Starts a command so that it, and every process that it starts, finds emulated NPUs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrator.data_folders import data_folder
from migrator.emulator import warden
from migrator.emulator.build import COMPUTE, SOURCES, Built
from migrator.emulator.installed import Installed

BOOTSTRAP = SOURCES / "bootstrap"
_GRACE = 10.0  # seconds for a command to end, once asked to


@dataclass(frozen=True)
class Machine:
    """The emulated machine."""

    devices: int = 8
    soc: str = "Ascend910B2"
    memory: int = 64 << 30
    report: Path | None = None
    random_from_cpu: bool = False
    places: Path | None = None  # what to watch the project for: see bootstrap/npumigrate_emulator/reached.py
    seed: int | None = None  # for programs that set none
    steps: int | None = None  # of its optimizers, after which a program ends
    watched: bool = False  # into the report's folder: what ended a process, and where it is when it is asked
    insight: Path | None = None  # the project whose places are recorded in the report
    strict: bool = False  # also refuse what torch_npu's documents do not list
    races: bool = False  # say where streams do not wait for each other
    sandbox: bool = False  # run in bubblewrap: see boxed


def environment(
    machine: Machine, built: Built, installed: Installed, base: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a program on the emulated machine."""
    changed = dict(base)
    changed.update(
        {
            "NPUMIGRATE_EMULATOR": str(built.folder),
            "NPUMIGRATE_EMULATOR_BOOTSTRAP": str(BOOTSTRAP),
            "NPUMIGRATE_EMULATOR_COMPUTE": str(built.libraries / COMPUTE),
            "NPUMIGRATE_EMULATOR_TORCH": str(installed.torch_folder),
            "NPUMIGRATE_EMULATOR_DEVICES": str(machine.devices),
            "NPUMIGRATE_EMULATOR_SOC": machine.soc,
            "NPUMIGRATE_EMULATOR_MEMORY": str(machine.memory),
            "NPUMIGRATE_EMULATOR_RANDOM": "cpu" if machine.random_from_cpu else "device",
            "NPUMIGRATE_EMULATOR_API_DB": str(data_folder("api_db")),
            "NPUMIGRATE_EMULATOR_STRICT": "1" if machine.strict else "0",
            "NPUMIGRATE_EMULATOR_RACES": "1" if machine.races else "0",
            "NPUMIGRATE_EMULATOR_SANDBOX": "1" if machine.sandbox else "0",
            "ASCEND_HOME_PATH": str(built.cann),
            "ASCEND_OPP_PATH": str(built.cann / "opp"),
            # Copies would be made by another thread, behind the back of the kernels.
            "TASK_QUEUE_ENABLE": "0",
            "NPUMIGRATE_EMULATOR_LATE": "1" if raises_late(base) else "0",
            # torch_npu refuses to run beside a GPU.
            "CUDA_VISIBLE_DEVICES": "",
        }
    )
    given = {
        "REPORT": machine.report,
        "PLACES": machine.places,
        "SEED": machine.seed,
        "STEPS": machine.steps,
        "WATCHED": machine.watched or None,
        "INSIGHT": machine.insight,
    }
    for name, value in given.items():
        changed.pop(f"NPUMIGRATE_EMULATOR_{name}", None)
        if value is not None:
            changed[f"NPUMIGRATE_EMULATOR_{name}"] = str(value)
    for variable, folder in (
        ("LD_LIBRARY_PATH", built.libraries),
        ("PYTHONPATH", BOOTSTRAP),
        # `python` and `torchrun` are those that the libraries were built for.
        ("PATH", f"{installed.python.parent}{os.pathsep}{built.tools}"),
    ):
        changed[variable] = in_front(folder, base.get(variable))
    return changed


def raises_late(env: Mapping[str, str]) -> bool:
    """Return whether torch_npu calls CANN from another thread: errors come at the next synchronization."""
    return env.get("TASK_QUEUE_ENABLE") == "2" and env.get("ASCEND_LAUNCH_BLOCKING") != "1"


def in_front(folder: Path | str, before: str | None) -> str:
    """The value of a variable such as PATH with a folder in front of what it had."""
    return f"{folder}{os.pathsep}{before}" if before else str(folder)


def with_cuda_on_cpu(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which CUDA programs run on the CPU, without torch_npu."""
    return {**env, "NPUMIGRATE_EMULATOR_STAND_IN": "cuda", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def find(command: str, env: Mapping[str, str], folder: Path | None = None) -> str | None:
    """Return the path of a command as the program's environment has it, or None.

    ``folder`` is where the program runs, if not here: a path such as ``./run.sh`` begins there.
    """
    if folder is not None and os.path.dirname(command):
        command = os.path.join(folder, command)
    return shutil.which(command, path=env.get("PATH"))


def boxed(command: Sequence[str], env: Mapping[str, str], writable: Iterable[Path | None]) -> list[str]:
    """The command of a program, in bubblewrap where its machine is to be a sandbox.

    It has no network, sees empty folders in place of the home folder and of that for temporary files, but for
    what Python and the emulator need, and can write below some folders only, which it makes if need be.
    """
    if env.get("NPUMIGRATE_EMULATOR_SANDBOX") != "1":
        return [*command]
    program = Path(command[0])
    places = [Path(sys.prefix), Path(sys.base_prefix), SOURCES.parent, data_folder("api_db")]
    places += [Path(env[f"NPUMIGRATE_EMULATOR{name}"]) for name in ("", "_TORCH")]
    places += [each.parents[1] for each in (program, program.resolve()) if each.parent.name == "bin"]
    hidden = [Path.home(), Path(tempfile.gettempdir())]
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev"]
    for folder in hidden:
        words += ["--tmpfs", str(folder)]
    for place in sorted({each for each in places if any(folder in each.parents for folder in hidden)}):
        words += ["--ro-bind", str(place), str(place)]
    for place in (each.resolve() for each in writable if each is not None):
        place.mkdir(parents=True, exist_ok=True)
        words += ["--bind", str(place), str(place)]
    return [*words, "--unshare-net", "--die-with-parent", "--", *command]


@dataclass
class Launch:
    """What all processes of one launch have in common.

    ``env``: in it they draw from the same memory of each device. ``released``: those that are left may go on.
    """

    env: dict[str, str]
    released: bool = False


@contextmanager
def one_launch(env: Mapping[str, str], folder: Path | None = None) -> Iterator[Launch]:
    """Begin a launch; when it ends, or this process is killed, end all that it has started.

    Not where it is released before. A ``folder`` is removed as well, where this process is killed.
    """
    ledger = os.memfd_create("npumigrate-memory")  # each process notes in it how much it uses
    name = f"/proc/{os.getpid()}/fd/{ledger}"
    # In a session of its own: what ends this process, and all of its group, does not end it.
    command = [sys.executable, "-I", "-S", warden.__file__, name, str(folder or "")]
    null = subprocess.DEVNULL
    own = {key: value for key, value in os.environ.items() if key != warden.MARK}  # it belongs to no launch
    watching = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=null, stderr=null, env=own, start_new_session=True
    )
    launch = Launch({**env, warden.MARK: name})
    try:
        yield launch
    finally:
        watching.communicate(warden.RELEASE if launch.released else warden.END)
        os.close(ledger)


def run(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command to its end and return its exit code, as a shell gives it.

    What asks this process to end is passed on to the command, and ends all that the command has started.
    So does the death of this process.

    Raises OSError if it cannot be started.
    """
    with one_launch(env) as launch:
        notes = env.get("NPUMIGRATE_EMULATOR_REPORT")
        places = [Path.cwd(), Path(notes) if notes else None]
        process = subprocess.Popen(boxed(command, launch.env, places), env=launch.env)
        launch.released = True

        def pass_on(number: int, _: object) -> None:
            launch.released = False
            if number != signal.SIGINT:  # a terminal sends that to the command as well
                process.send_signal(number)
                end = threading.Timer(_GRACE, process.kill)
                end.daemon = True
                end.start()

        with when_asked_to_end(pass_on):
            return shell_code(process.wait())


@contextmanager
def when_asked_to_end(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Let a function have the signals that ask this process to end."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def shell_code(code: int) -> int:
    """The exit code of a process as a shell gives it: 128 and the number of a signal that ended it."""
    return 128 - code if code < 0 else code
