"""torch_npu's own tests on emulated NPUs: how many pass, and why the others do not.

python -m benchmarks.torch_npu_tests DIR [DIR…] [--draw 400] [--seed 0] [--only PATTERN] [--write FILE]
    [--again FILE] [--limit 45]

DIR is a checkout of torch_npu (Ascend/pytorch) or of op-plugin (Ascend/op-plugin), of the installed version.
Tests are drawn by function, at most two of a file; of one that runs for several dtypes, one runs. Some files
of a folder share a process, with limits of time and memory; what one that ends early did not come to runs in
others. `--again` runs what did not pass in an earlier FILE, and counts the rest as it was; with a larger
`--limit` those, too, that a busy machine had no time for. The tests want the
packages `expecttest`, `scipy`, `hypothesis` and `parameterized`. What torch_npu itself lists as failing on an
NPU is not counted, whether it passes here or not; nor is a test that fails with the very same error where
there is neither an NPU nor torch_npu, as torch alone fails it.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Optional

_WANTED = "NPUMIGRATE_TESTS_WANTED"  # a file for the plugin: which tests of the file, and where outcomes go
_ALONE = "NPUMIGRATE_TESTS_ALONE"  # torch without torch_npu
_START = 60.0  # seconds to import and collect
_LIMITED = "NPUMIGRATE_TESTS_LIMIT"
_LIMIT = int(os.environ.get(_LIMITED, "45"))  # seconds of one test
_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2  # bytes of a group of tests
_NO_TESTS = 5  # what pytest returns then
_FILES = 12  # files that share a process
_LISTED = "no fault: torch_npu lists it as failing on an NPU"
_TORCH_ALONE = "no fault: torch alone fails in the same way"
_OTHER_TORCH = "no fault: wants another torch or torch_npu"
_END = 30  # characters of an error that torch's source has as they are
_NOT_REACHED = ("not collected", "no answer: too slow", "no answer: too much memory", "process crashed")
# Folders that are not drawn from, and why.
_NOT_DRAWN = {
    "_afd": "TorchAir, a compiler for NPUs",
    "_inductor": "Triton's kernels, compiled for an NPU",
    "bottleneck_test": "programs for a tool, not tests",
    "cpp": "C++",
    "cpp_extensions": "extensions in C++, built against CANN",
    "onnx": "exports, with packages for ONNX",
    "profiler": "measurements of an NPU",
    "test_v1r11_ops": "torch 1.11",
}

_NO_TEST = "no fault: its file makes no such test"
# What is left out of the count, and why. Each such test is printed with its error.
LEFT_OUT = {
    _LISTED: "torch_npu's own runs leave it out (test/unsupported_test_cases)",
    _TORCH_ALONE: "the same error without an NPU and torch_npu: no NPU would change it",
    _OTHER_TORCH: "it asks for a name that the installed torch_npu lacks, or other words of torch's errors",
    _NO_TEST: "its class or name is made for other devices, or for none",
    "no fault: wants a library beside CANN": "ATB, SiP and user-made operators are installed apart from CANN",
    "no fault: a package is missing": "a Python package or a file that the test does not bring with it",
    "no fault: wants another numpy": "numpy's own error, in the test's own lines",
    "no fault: looks into a profile of an NPU": "it counts the kernels that an NPU ran",
    "no fault: wants compilers of an NPU": "Triton, TorchAir, bisheng, ninja: they make code for an NPU",
}
# The first whose expression is in the error names the cause; what begins with "no fault" is not counted.
CAUSES: tuple[tuple[str, str], ...] = (
    ("no fault: wants a library beside CANN", r"libatb|_atb|Asdsip|aclnnop"),
    (
        "no fault: a package is missing",
        r"ModuleNotFoundError|ImportError: cannot import name|No such file or directory: ",
    ),
    (
        "no fault: wants another numpy",
        r"numpy.* has no attribute|was removed in .{0,20}NumPy 2|numpy.*out of bounds|only 0-dimensional",
    ),
    (
        _OTHER_TORCH,
        r"module 'torch_npu' has no attribute|Signatures do not match|not an allowed global by default",
    ),
    ("no fault: looks into a profile of an NPU", r"Error operators called"),
    (
        "no fault: wants compilers of an NPU",
        r"triton|torchair|TorchAir|libfmk_parser|ninja|aclgraph_dump|bisheng",
    ),
    (
        "operator is missing",
        r"the emulator lacks|not in libopapi|Could not run '|No operator found|implemented for .*PrivateUse1",
    ),
    ("sparse tensors", r"sparse tensors of an NPU|Sparse(Csr)?PrivateUse1|Sparse"),
    ("runtime call is missing", r"is not emulated|call acl api failed|API_NOT_SUPPORT"),
    ("no answer: too slow", r"TooSlow"),
    ("error is not raised", r"not raised|DID NOT RAISE|not triggered"),
    ("error is another", r'AssertionError: ".*" does not match|AssertionError: .* not found in .*[Ee]rror'),
    ("dtype of the CPU's kernel", r"not implemented for '|not supported for"),
    ("collective", r"HCCL|ProcessGroup|DistBackendError|Exception: Process \d+|exited with error code"),
    ("result is wrong", r"AssertionError"),
)


class Drawn(NamedTuple):
    """A test function, by its file, its class and its name."""

    root: str
    file: str
    group: str
    name: str


class Outcome(NamedTuple):
    """What became of it: passed, skipped, or a cause, and the last line of the error."""

    test: Drawn
    state: str
    said: str


def find(roots: Iterable[Path]) -> Iterator[Drawn]:
    """Yield the test functions of the checkouts, without importing them."""
    for root in roots:
        for path in sorted((root / "test").rglob("test_*.py")):
            file = path.relative_to(root / "test")
            if file.parts[0] in _NOT_DRAWN:
                continue
            with suppress(SyntaxError):
                for group in ast.parse(path.read_text(encoding="utf-8")).body:
                    if isinstance(group, ast.ClassDef):
                        for function in group.body:
                            if isinstance(function, ast.FunctionDef) and function.name.startswith("test"):
                                yield Drawn(str(root), str(file), group.name, function.name)


def draw(tests: Sequence[Drawn], count: int, seed: int) -> list[Drawn]:
    """Draw at most two functions of each file, until there are enough."""
    order = random.Random(seed)
    files: dict[tuple[str, str], list[Drawn]] = {}
    for test in tests:
        files.setdefault(test[:2], []).append(test)
    drawn = [order.sample(inside, min(2, len(inside))) for inside in files.values()]
    order.shuffle(drawn)
    # A class may define a test twice, for two devices.
    return list(dict.fromkeys(test for inside in drawn for test in inside))[:count]


def groups(tests: Iterable[Drawn]) -> list[list[Drawn]]:
    """Return which tests share a process: those of some files of one folder."""
    folders: dict[tuple[str, str], dict[str, list[Drawn]]] = {}
    for test in sorted(tests):
        folders.setdefault((test.root, os.path.dirname(test.file)), {}).setdefault(test.file, []).append(test)
    parts = []
    for files in folders.values():
        each = list(files.values())
        parts += [[*chain(*each[i : i + _FILES])] for i in range(0, len(each), _FILES)]
    return parts


def run(tests: Sequence[Drawn], devices: int) -> list[Outcome]:
    """Run tests in one process; those that it did not come to, in others; misses with torch alone as well."""
    return [_with_torch_alone(each) for each in _reached(tests, devices)]


def _with_torch_alone(outcome: Outcome) -> Outcome:
    if outcome.state in ("passed", "skipped", "process crashed") or outcome.state.startswith("no "):
        return outcome
    alone = _run([outcome.test], 0)[0]
    same = alone.said and alone.said == outcome.said
    return outcome._replace(state=_TORCH_ALONE) if same else outcome


def _reached(tests: Sequence[Drawn], devices: int) -> list[Outcome]:
    files = sorted({test.file for test in tests})
    outcomes = _run(tests, devices)
    reached = [outcome for outcome in outcomes if outcome.state not in _NOT_REACHED]
    left = [outcome.test for outcome in outcomes if outcome.state in _NOT_REACHED]
    if not left or len(files) == 1:
        return outcomes
    for file in files:
        inside = [test for test in left if test.file == file]
        reached += _run(inside, devices) if inside else []
    return reached


def _run(tests: Sequence[Drawn], devices: int) -> list[Outcome]:
    """Run tests on emulated NPUs; without any, on the CPU and without torch_npu."""
    work = Path(tempfile.mkdtemp(prefix="torch-npu-tests-"))
    wanted, outcomes = work / "wanted.json", work / "outcomes"
    wanted.write_text(json.dumps({"tests": [test[1:] for test in tests], "outcomes": str(outcomes)}))
    root = Path(tests[0].root, "test")
    files = sorted({str(root / test.file) for test in tests})
    before = [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    # A test that is run as a script finds what lies beside it.
    beside = sorted({os.path.dirname(file) for file in files})
    environment = {
        **os.environ,
        _WANTED: str(wanted),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).resolve().parent), str(root), *before, *beside]),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if not devices:
        environment.update({_ALONE: "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", Path(__file__).stem, "-p", "no:cacheprovider"]
    # Of classes alone, as unittest has it: a function beside them may only be named as a test is.
    pytest += ["-o", "python_functions=no_function_alone"]
    emulate = (
        [sys.executable, "-m", "migrator", "emulate", "--devices", str(devices), "--"] if devices else []
    )
    with open(work / "output", "w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            [
                *(emulate if devices else ()),
                *pytest,
                "--continue-on-collection-errors",
                f"--rootdir={root}",
                "-c",
                os.devnull,
                *files,
            ],
            cwd=work,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        ended = _wait(process, _START + 3 * len(files) + int(os.environ.get(_LIMITED, _LIMIT)) * len(tests))
        output.seek(0)
        said = output.read()
    found = {}
    if outcomes.exists():
        for line in outcomes.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            found[tuple(entry["test"])] = entry
    shutil.rmtree(work, ignore_errors=True)
    return [_outcome(test, found.get(test[1:]), ended, process.returncode, said) for test in tests]


def _outcome(test: Drawn, entry: Optional[dict[str, Any]], ended: str, code: int, output: str) -> Outcome:
    if entry is None:
        if ended:
            return Outcome(test, ended, "")
        if code > 128 or "Fatal Python error" in output:
            return Outcome(test, "process crashed", f"exit code {code}")
        errors = output.partition(f"ERROR collecting {test.file}")[2].partition("ERROR collecting")[0]
        if not errors and code in (0, 1, _NO_TESTS):
            return Outcome(test, _NO_TEST, "")
        return Outcome(test, cause_of(errors, "not collected"), _last(errors))
    if tuple(entry["item"]) in _listed(test.root):
        return Outcome(test, _LISTED, entry["state"])
    if entry["state"] in ("passed", "skipped"):
        return Outcome(test, entry["state"], entry["said"])
    if entry["state"] == "begun":
        return Outcome(test, ended or "process crashed", f"exit code {code}")
    return Outcome(test, cause_of(entry["said"], "another error"), _last(entry["said"]))


@cache
def _listed(root: str) -> frozenset[tuple[str, ...]]:
    """Return names and classes of the tests that torch_npu's own runs leave out: they fail on an NPU."""
    folder = Path(root, "test", "unsupported_test_cases")
    own = folder / f".pytorch-disabled-tests-{'.'.join(version('torch').split('.')[:2])}.json"
    path = own if own.exists() else folder / ".pytorch-disabled-tests.json"
    if not path.exists():
        return frozenset()
    names = (re.fullmatch(r"(\w+) \((?:\w+\.)*(\w+)\)", name) for name in json.loads(path.read_text()))
    return frozenset(found.groups() for found in names if found)


def cause_of(error: str, otherwise: str) -> str:
    """Return the cause that an error's lines name."""
    lines = [line for line in error.splitlines() if line.startswith("E  ")] or error.splitlines()
    shown = "\n".join(lines)
    for expected, found in re.findall(r'AssertionError: "(.*)" does not match "(.*)"', shown):
        if _is_of_torch(found[-_END:]) and not _is_of_torch(expected):
            return _OTHER_TORCH
    return next((cause for cause, shape in CAUSES if re.search(shape, shown)), otherwise)


@cache
def _is_of_torch(text: str) -> bool:
    """Return whether torch's own Python has a text: of an error, which no NPU changes."""
    place = find_spec("torch")
    folders = place.submodule_search_locations if place else None
    return any(
        text in path.read_text("utf-8") for folder in folders or () for path in Path(folder).rglob("*.py")
    )


def _last(error: str) -> str:
    lines = [line[1:].strip() for line in error.splitlines() if line.startswith("E  ")] or error.splitlines()
    first = next((line for line in lines if re.match(r"[\w.]*(Error|Exception|Failed)\b", line)), "")
    return (first or " ".join(lines[-3:]))[:300]


def _wait(process: subprocess.Popen[bytes], limit: float) -> str:
    """Wait for a process; end it, and say why, where it goes past a limit."""
    end = time.monotonic() + limit
    why = ""
    while process.poll() is None:
        if time.monotonic() > end:
            why = "no answer: too slow"
        elif _resident(process.pid) > _MEMORY:
            why = "no answer: too much memory"
        if why:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        time.sleep(0.2)
    return why


def _resident(session: int) -> int:
    """Return the bytes that the processes of a session hold, without what they read from files and share."""
    total = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, IndexError, ValueError):
            fields = Path("/proc", name, "stat").read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == session:
                status = Path("/proc", name, "status").read_text(errors="replace")
                total += sum(int(size) << 10 for size in re.findall(r"Rss(?:Anon|Shmem):\s+(\d+)", status))
    return total


def table(outcomes: Sequence[Outcome]) -> str:
    """Return how many there are of each outcome, and the share that passed.

    A test that fails, or gives no answer for whatever reason, is a miss; LEFT_OUT says what is neither.
    """
    states = Counter(outcome.state for outcome in outcomes)
    passed, skipped = states.pop("passed", 0), states.pop("skipped", 0)
    missed = sum(count for state, count in states.items() if state not in LEFT_OUT)
    share = 100 * passed / max(1, passed + missed)
    lines = [f"{passed} of {passed + missed} that can pass do ({share:.1f} %); {skipped} skip themselves"]
    for state, count in states.most_common():
        lines.append(f"{count:5} {state}" + (f" ({LEFT_OUT[state]})" if state in LEFT_OUT else ""))
    listed = sum(outcome[1:] == (_LISTED, "passed") for outcome in outcomes)
    lines += [f"      ({listed} of these pass here)"] if listed else []
    return "\n".join(lines)


def main() -> None:
    """Draw, run, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("roots", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--draw", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="*", help="a pattern of file:class.name")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--again", type=Path, metavar="FILE")
    parser.add_argument("--limit", type=int, default=_LIMIT, help="seconds of one test")
    options = parser.parse_args()
    os.environ[_LIMITED] = str(options.limit)
    tests = [
        test
        for test in find([root.resolve() for root in options.roots])
        if fnmatch(_full(test), options.only)
    ]
    print(f"{len(tests)} tests", file=sys.stderr)
    if options.again:
        earlier = [Outcome(Drawn(*entry[0]), *entry[1:]) for entry in json.loads(options.again.read_text())]
        tests = [each.test for each in earlier if each.state not in ("passed", "skipped")]
        done = [each for each in earlier if each.state in ("passed", "skipped")]
    else:
        tests, done = draw(tests, options.draw, options.seed), []
    for together in groups(tests):
        for outcome in run(together, options.devices):
            done.append(outcome)
            if outcome.state not in ("passed", "skipped"):
                print(f"{_full(outcome.test)}: {outcome.state}: {outcome.said}", flush=True)
        if options.write:
            options.write.write_text(json.dumps(done, indent=1))
    print(table(done))


def _full(test: Drawn) -> str:
    return f"{test.file}:{test.group}.{test.name}"


# In the process of a file this module is a plugin of pytest.


def pytest_configure() -> None:
    """Let classes be made that look for their method by its name, as pytest makes one without a test."""
    setattr(unittest.TestCase, "runTest", lambda self: None)  # noqa: B010 (a method that it has not)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Leave of each wanted function the first test that it makes."""
    kept: list[Any] = []
    for wanted in _wanted()["tests"]:
        file, group, name = wanted
        for item in items:
            own = item.cls.__name__ if item.cls else ""
            same = str(item.path).endswith(file) and own.startswith(group)
            if same and re.match(rf"{re.escape(name)}($|_|\[)", item.name) and item not in kept:
                item.wanted = wanted
                kept.append(item)
                break
    items[:] = kept


def pytest_runtest_protocol(item: Any) -> None:
    """Note that a test begins, and limit its time."""
    _note(item, "begun", "")
    signal.signal(signal.SIGALRM, _too_slow)
    signal.alarm(_LIMIT)


def pytest_runtest_makereport(item: Any, call: Any) -> None:
    """Note how it went."""
    if call.when == "call":
        signal.alarm(0)
    if call.excinfo is None:
        if call.when == "call":
            _note(item, "passed", "")
        return
    if call.excinfo.typename in ("Skipped", "SkipTest", "XFailed"):
        _note(item, "skipped", str(call.excinfo.value))
    else:
        _note(item, "failed", "\n".join(f"E  {line}" for line in _said(call.excinfo.value)))


def _said(error: BaseException) -> list[str]:
    """Return the lines of an error, and of the one that it was raised from."""
    lines = traceback.format_exception_only(type(error), error)
    return "".join(lines).splitlines() + (_said(error.__cause__) if error.__cause__ else [])


class _Absent(ModuleType):
    """What stands for torch_npu where there is none: imports, decorates and does nothing."""

    __path__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("TestCase", "run_tests"):
            from torch.testing._internal import common_utils

            return getattr(common_utils, name)
        return _Absent(f"{self.__name__}.{name}")

    def __call__(self, *given: Any, **_: Any) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) else self


class _Absence(MetaPathFinder, Loader):
    """Finds torch_npu where there is none."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] == "torch_npu" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Absent(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


if _ALONE in os.environ:
    sys.meta_path.insert(0, _Absence())


class TooSlow(BaseException):
    """The time of a test is over; no Exception, so that no test takes it for one of its own."""


def _too_slow(*_: object) -> None:
    raise TooSlow


def _wanted() -> Any:
    return json.loads(Path(os.environ[_WANTED]).read_text())


def _note(item: Any, state: str, said: str) -> None:
    with open(_wanted()["outcomes"], "a", encoding="utf-8") as file:
        named = [item.name, item.cls.__name__ if item.cls else ""]
        file.write(json.dumps({"test": item.wanted, "item": named, "state": state, "said": said}) + "\n")


if __name__ == "__main__":
    main()
