"""Builds the emulated CANN for the installed torch and torch_npu, once, into the user's cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrator.emulator.elf import Wanted, defined_functions, wanted_from_cann
from migrator.emulator.installed import EmulatorError, Installed
from migrator.language import N_, _

SOURCES = Path(__file__).parent
CORE = "libnpumigrate_cann.so"
COMPUTE = "libnpumigrate_compute.so"
# torch_npu wants them in ASCEND_HOME_PATH, and looks for nothing in them.
_CANN_FOLDERS = ("compiler", "opp", "runtime")
# What torch_npu's profiler starts, and the file that it looks for beside it.
_MSPROF = SOURCES / "msprof.py"
_MSPROF_IN_CANN = "tools/profiler/profiler_tool/analysis/msprof/msprof.py"
_TOOLS = "tools/profiler/bin"
_START = f'#!/bin/sh\nexec python3 -I -S "$(dirname "$0")/../../../{_MSPROF_IN_CANN}" "$@"\n'
# Called while torch_npu 2.4 is loaded: operators of a graph engine, which nobody starts.
_AT_LOADING = "_ZN2ge23OperatorCreatorRegister"
_FLAGS = ("-std=c++20", "-O1", "-fPIC")

_LOOK = 0.5  # seconds between two calls of Progress

Say = Callable[[str], None]
Progress = Callable[[str, int, int], None]  # stage, done, total


@dataclass(frozen=True)
class Built:
    """A finished build: a folder that nobody writes to any more."""

    folder: Path

    @property
    def libraries(self) -> Path:
        """The folder to find shared libraries in."""
        return self.folder / "lib"

    @property
    def cann(self) -> Path:
        """What ASCEND_HOME_PATH is to be."""
        return self.folder / "cann"

    @property
    def tools(self) -> Path:
        """The folder of CANN's commands, for PATH."""
        return self.cann / _TOOLS


def cache_folder() -> Path:
    """Return the folder that holds the builds of this user (XDG base directory specification)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "npumigrate" / "emulator"


def build(installed: Installed, say: Say, progress: AbstractContextManager[Progress] | None = None) -> Built:
    """Return the build for what is installed; make it if there is none yet.

    ``say`` gets whole lines; ``progress`` is entered while compilers run, and called twice a second.
    Several processes may call this at once: one builds, the others wait. A build appears by one rename.

    Raises EmulatorError.
    """
    folder = cache_folder() / _name(installed)
    if folder.is_dir():
        return Built(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent / "lock", "waiting for another process that builds the emulated NPU", say):
            if not folder.is_dir():
                _build_into(folder, installed, say, progress or nullcontext(_unseen))
    except OSError as error:
        said = N_("cannot build in {folder}: {why}; XDG_CACHE_HOME names another folder")
        raise EmulatorError(_(said, folder=folder.parent, why=error.strerror)) from None
    return Built(folder)


def built(installed: Installed) -> Built | None:
    """Return the build for what is installed, if there is one."""
    folder = cache_folder() / _name(installed)
    return Built(folder) if folder.is_dir() else None


def _name(installed: Installed) -> str:
    key = hashlib.sha256()
    for part in (
        installed.torch,
        installed.torch_npu,
        str(installed.torch_folder),
        str(installed.torch_npu_folder),
        installed.compiler_version,
        platform.machine(),
    ):
        key.update(part.encode() + b"\0")
    for path in [*_sources("cann"), *_sources("compute"), _MSPROF, Path(__file__)]:
        key.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"torch_npu-{installed.torch_npu}-{key.hexdigest()[:16]}"


def _sources(part: str) -> list[Path]:
    return sorted(path for path in (SOURCES / part).iterdir() if path.suffix in (".cpp", ".h"))


@contextmanager
def locked(path: Path, waiting: str, say: Say) -> Iterator[None]:
    """Hold a lock, and say that it waits for it; the system frees it however the process ends."""
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(waiting)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _unseen(stage: str, done: int, total: int) -> None:
    pass


def _build_into(
    folder: Path, installed: Installed, say: Say, progress: AbstractContextManager[Progress]
) -> None:
    said = N_("building the emulated NPU for torch_npu {torch_npu} (once, half a minute)")
    say(_(said, torch_npu=installed.torch_npu))
    start = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    try:
        os.chmod(work, 0o755)  # nosec B103 # libraries that processes of others load
        with progress as shown:
            _compile(work, installed, shown)
        for name in _CANN_FOLDERS:
            (work / "cann" / name).mkdir(parents=True)
        command, program = work / "cann" / _TOOLS / "msprof", work / "cann" / _MSPROF_IN_CANN
        command.parent.mkdir(parents=True)
        program.parent.mkdir(parents=True)
        command.write_text(_START)
        command.chmod(0o755)  # nosec B103 # a command
        shutil.copyfile(_MSPROF, program)
        shutil.rmtree(work / "objects")
        os.rename(work, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(_("built in {seconds:.0f} s: {folder}", seconds=time.monotonic() - start, folder=folder))


def _compile(work: Path, installed: Installed, progress: Progress) -> None:
    objects, libraries = work / "objects", work / "lib"
    objects.mkdir()
    libraries.mkdir()
    torch = installed.torch_folder / "include"
    npu = installed.torch_npu_folder / "include"
    for_cann = [
        *(
            "-isystem",
            str(npu / "third_party" / "acl" / "inc"),
            "-isystem",
            str(npu / "third_party" / "hccl" / "inc"),
        ),
        *("-isystem", str(npu), "-isystem", str(torch)),
    ]
    for_compute = [
        "-DNDEBUG",  # as torch itself is built: it decides the layout of at::RecordFunction
        *("-isystem", str(torch), "-isystem", str(torch / "torch" / "csrc" / "api" / "include")),
        *("-isystem", str(npu), "-isystem", str(npu / "third_party" / "acl" / "inc")),
        *("-isystem", str(npu / "third_party" / "hccl" / "inc")),
        *("-I", str(SOURCES / "compute"), "-fvisibility=hidden"),
    ]
    # torch's headers take most of the time, so the compute part is compiled as one.
    whole = objects / "compute.cpp"
    whole.write_text(
        "".join(f'#include "{path.name}"\n' for path in _sources("compute") if path.suffix == ".cpp")
    )
    jobs = [(whole, for_compute), *((path, for_cann) for path in _sources("cann") if path.suffix == ".cpp")]

    strings = f"-D_GLIBCXX_USE_CXX11_ABI={int(_has_new_strings(installed.torch_folder))}"

    def compile_one(job: tuple[Path, list[str]]) -> Path:
        source, flags = job
        target = objects / f"{source.stem}.o"
        _run(installed, [*_FLAGS, strings, *flags, "-c", str(source), "-o", str(target)], source.name)
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wanted = pool.submit(wanted_from_cann, installed.torch_npu_folder, installed.torch_folder)
        compiled = [pool.submit(compile_one, job) for job in jobs]
        _watch([wanted, *compiled], progress)
        compute, *cann = [each.result() for each in compiled]
    _link_cann(installed, libraries, cann, wanted.result(), objects)
    torch_libraries = installed.torch_folder / "lib"
    with_torch = [f"-L{torch_libraries}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{torch_libraries}"]
    _run(installed, ["-shared", "-o", str(libraries / COMPUTE), str(compute), *with_torch], COMPUTE)


def _has_new_strings(torch: Path) -> bool:
    """Return how torch was compiled: releases before 2.7 exist with both of the C++ library's strings."""
    return (
        b"_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_string"
        in (torch / "lib" / "libc10.so").read_bytes()
    )


def _watch(work: Sequence[Future[Any]], progress: Progress) -> None:
    """Wait until all is done; raise the first error, and begin nothing after it."""
    left = set(work)
    try:
        while left:
            progress("compiling", len(work) - len(left), len(work))
            done, left = wait(left, _LOOK, FIRST_COMPLETED)
            for each in done:
                each.result()
    finally:
        for each in left:
            each.cancel()


def _link_cann(
    installed: Installed, libraries: Path, objects: Sequence[Path], wanted: Wanted, work: Path
) -> None:
    """Link one library with all there is, and for each name that torch_npu asks for one that needs it."""
    ours = defined_functions(objects)
    stand_ins = work / "stand_ins.cpp"
    stand_ins.write_text(_stand_ins([name for name in wanted.functions if name not in ours], wanted.data))
    core = ["-o", str(libraries / CORE), f"-Wl,-soname,{CORE}", str(stand_ins), *map(str, objects)]
    _run(installed, ["-shared", *_FLAGS, *core, "-lpthread", "-lrt"], CORE)
    empty = work / "empty.cpp"
    empty.write_text("")
    needs_core = ["-Wl,--no-as-needed", str(empty), f"-L{libraries}", f"-l:{CORE}", "-Wl,-rpath,$ORIGIN"]
    for name in wanted.libraries:
        named = ["-o", str(libraries / name), f"-Wl,-soname,{name}"]
        _run(installed, ["-shared", "-fPIC", *named, *needs_core], name)


def _stand_ins(functions: Sequence[str], data: Sequence[str]) -> str:
    """Return the source of functions that say that they are missing, and of room for class descriptions."""
    lines = ['extern "C" {', "int emulator_missing(const char*);"]
    for name in functions:
        said = "0" if name.startswith(_AT_LOADING) else f'emulator_missing("{name}")'
        lines.append(f"int {name}() {{ return {said}; }}")
    lines += [f"extern char {name}[256];\nchar {name}[256];" for name in data]
    return "\n".join([*lines, "}", ""])


def _run(installed: Installed, arguments: Sequence[str], what: str) -> None:
    done = subprocess.run([*installed.compiler, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
    said, why = N_("{compiler} cannot build {what}: {why}"), [*errors, _("no message")][0].strip()
    raise EmulatorError(_(said, compiler=installed.compiler_version, what=what, why=why))
