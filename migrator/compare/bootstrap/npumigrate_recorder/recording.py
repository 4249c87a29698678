"""Records what a program computes in its first steps, without a change in its code.

Modules are seen by ``torch.nn.Module.__call__``: it has all arguments, and its ``finally`` keeps the order
also where a forward pass is left early, as by checkpoints. APIs are seen by a ``TorchFunctionMode``: it sees
operators and methods of tensors, too, and replaces nothing in torch, so TorchScript, identity and pickling
stay. Gradients are seen by hooks of tensors: full backward hooks would make views of what a module gives,
which programs that change it in place refuse. A step ends with the step of an optimizer.

Nothing in here may break the program: what fails is noted in the trace, and the program goes on.
``docs/compare.md`` has the format of the trace.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import platform
import random
import re
import sys
import threading
import time
import warnings
import weakref
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, wraps
from typing import Any, Optional

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode, resolve_name

from npumigrate_recorder import drawing
from npumigrate_recorder.measuring import measurable, measure, merge

SCHEMA = 1
_LARGEST = 50 << 20  # bytes of a process's trace
_CALLS = 64  # of one module, or of one API in one module, in one step
_TENSORS = 16  # of one call
_LINES = 50_000
_LONGEST = 400  # characters of a line, of the arguments of an API
# They compute nothing: what they give is seen where it goes to.
_UNSEEN = frozenset(
    "size dim numel item tolist backward detach detach_ requires_grad_ register_hook retain_grad "
    "is_contiguous stride storage untyped_storage data_ptr element_size view view_as reshape transpose "
    "permute expand expand_as unsqueeze squeeze flatten unflatten unbind narrow select chunk split "
    "tensor_split t contiguous to cpu cuda npu __getitem__ __len__ __repr__ __format__ __hash__ "
    "__bool__ __iter__ __reduce_ex__ __deepcopy__ numpy device is_floating_point is_complex pin_memory "
    "share_memory_ record_stream movedim swapaxes real imag set_ new empty empty_like empty_strided "
    "new_empty is_tensor is_storage get_device type_as broadcast_tensors".split()
)
_NUMBER = re.compile(r"\d|\b(?:nan|inf)\b", re.IGNORECASE)
_WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module")


class Recorder:
    """Records the process that it is in."""

    def __init__(self, folder: str, steps: int, level: str, same_random: bool) -> None:
        self.folder, self.steps = folder, steps
        self.modules, self.apis, self.same_random = level != "L1", level != "L0", same_random
        self.mode: Any = _Mode(self)
        self.reset()

    def reset(self) -> None:
        """Begin anew, as in a forked process."""
        self.on, self.busy, self.step, self.written, self.index, self.calls = True, False, 0, 0, 0, 0
        self.file, self.packer = -1, zlib.compressobj(5, wbits=31)
        self.thread = threading.get_ident()
        self.strings: dict[str, int] = {}
        self.new_strings: list[str] = []
        self.rows: list[Any] = []
        self.kinds: list[int] = []
        self.waiting: list[tuple[int, Any]] = []
        self.known: dict[int, tuple[Any, int, int]] = {}
        self.names: weakref.WeakKeyDictionary[Any, tuple[int, str]] = weakref.WeakKeyDictionary()
        self.labels: Counter[str] = Counter()
        self.roots: dict[int, tuple[Any, str]] = {}  # by its first number in the table of modules
        self.table = 0
        self.seen: Counter[Any] = Counter()
        self.stack: list[int] = []
        self.optimizers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.notes: set[str] = set()
        self.lines, self.line = 0, {1: "", 2: ""}
        self.stepped = self.graded = self.stepping = False
        self.step_of_optimizers = 0

    # What is written.

    def string(self, text: str) -> int:
        """The number of a text in the trace."""
        if text not in self.strings:
            self.strings[text] = len(self.strings)
            self.new_strings.append(text)
        return self.strings[text]

    def note(self, what: str) -> None:
        """Write down once that something could not be recorded."""
        if what not in self.notes:
            self.notes.add(what)
            self.rows.append(["note", self.string(what[:_LONGEST])])

    @contextmanager
    def own(self, what: str) -> Iterator[None]:
        """What is done here is ours: it is not recorded, and it does not fail."""
        outer, self.busy = self.busy, True
        try:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                yield
        except Exception as error:
            self.note(f"{what}: {type(error).__name__}: {error}")
        finally:
            self.busy = outer

    def flush(self) -> None:
        """Write what there is, so that it can be read also where the process is killed."""
        numbers = array("f")
        by_device: dict[Any, list[tuple[int, Any]]] = {}
        for place, measured in self.waiting:
            by_device.setdefault(measured.device, []).append((place, measured))
        pieces: dict[int, list[list[float]]] = {}
        for pairs in by_device.values():
            with self.own("numbers"):
                values = torch.stack([measured for _, measured in pairs]).tolist()
                for (place, _), each in zip(pairs, values):
                    pieces.setdefault(place, []).append(each)
        for place in range(len(self.kinds)):
            numbers.extend(merge(pieces[place]) if place in pieces else [float("nan")] * 14)
        if sys.byteorder == "big":
            numbers.byteswap()
        if not (self.rows or self.kinds):
            return
        block = {
            "step": self.step,
            "first": self.index - len(self.kinds),
            "strings": self.new_strings,
            "kinds": self.kinds,
            "numbers": base64.b64encode(numbers.tobytes()).decode(),
            "rows": self.rows,
        }
        self.rows, self.kinds, self.waiting, self.new_strings = [], [], [], []
        try:
            if self.file < 0:
                self.open()
            self.write(block)
        except OSError as error:
            self.on, self.lines = False, _LINES
            print(f"npumigrate record: the trace cannot be written: {error}", file=sys.__stderr__)
        if self.written > _LARGEST and self.on:
            self.on = False
            self.note(f"the trace is full: {_LARGEST >> 20} MiB")

    def open(self) -> None:
        """Begin the file of this process."""
        path = os.path.join(self.folder, f"process-{os.getpid()}-{time.monotonic_ns()}.jsonl.gz")
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        self.write({"schema": SCHEMA, "rank": _rank(), "process": os.getpid(), "argv": sys.argv})

    def write(self, line: Any, end: int = zlib.Z_SYNC_FLUSH) -> None:
        """Write a line; no file object is left to a forked process, which would close it once more."""
        text = json.dumps(line, separators=(",", ":")) + "\n" if line else ""
        data = self.packer.compress(text.encode("utf-8", "backslashreplace")) + self.packer.flush(end)
        self.written += len(data)
        while data:
            data = data[os.write(self.file, data) :]

    # Tensors.

    def tensor(self, value: Any) -> int:
        """The number of a tensor as it is now; -1 where it has no numbers."""
        try:
            version = value._version
        except RuntimeError:  # made in inference mode
            version = -1
        found = self.known.get(id(value))
        if found is not None and found[0]() is value and found[1] == version >= 0:
            return found[2]
        if not measurable(value):
            if type(value).__name__ not in ("Tensor", "Parameter"):
                self.note(f"tensors of {type(value).__name__} are left out")
            return -1
        if value.is_cuda and torch.cuda.is_current_stream_capturing():
            return -1
        measured = measure(value)
        index = self.index
        self.index += 1
        shape = "x".join(map(str, value.shape))
        kind = f"{shape} {str(value.dtype)[6:]} {value.device} {int(value.requires_grad)}"
        self.kinds.append(self.string(kind))
        place = len(self.kinds) - 1
        self.waiting += [(place, each) for each in measured]
        self.known[id(value)] = weakref.ref(value), version, index
        if value.requires_grad and not value.is_leaf:
            value.register_hook(partial(self.graded_by, index))
        return index

    def tensors(self, value: Any) -> list[int]:
        """The numbers of all tensors in what a call takes or gives."""
        return [self.tensor(each) for each in _tensors_in(value)][:_TENSORS]

    def graded_by(self, index: int, gradient: Any) -> None:
        """Called with the gradient of a tensor."""
        self.graded = True
        if self.on and not self.busy and isinstance(gradient, torch.Tensor):
            with self.own("backward"):
                self.rows.append(["grad", index, self.tensor(gradient)])

    # Calls.

    def listens(self) -> bool:
        """Whether what this thread does now is recorded."""
        return self.on and not self.busy and threading.get_ident() == self.thread

    def enter(self, module: Any, arguments: Any, grad: bool) -> Optional[tuple[Any, ...]]:
        """Before a module's call: what ``leave`` needs; None where it is not recorded."""
        with self.own("module"):
            if module not in self.names:
                self.name(module)
            table, _path = self.names[module]
            if not self.stack and self.seen[table] and not (self.stepped or self.graded or grad):
                self.end_step()  # a program without an optimizer: each call of its model is a step
            self.seen[table] += 1
            if self.seen[table] > _CALLS:
                return None
            parent = self.stack[-1] if self.stack else -1
            self.calls += 1
            self.stack.append(self.calls)
            given = self.tensors(arguments) if self.modules else []
            return self.calls, parent, table, int(module.training), given, len(self.stack)
        return None

    def leave(self, entered: tuple[Any, ...], result: Any) -> None:
        """After a module's call."""
        number, parent, table, training, given, depth = entered
        del self.stack[depth - 1 :]
        if result is not None and self.on:
            with self.own("module"):
                made = self.tensors(result) if self.modules else []
                self.rows.append(["module", number, parent, table, training, given, made])

    def name(self, module: Any) -> None:
        """Name a module that is called from the program, and all below it, by their places."""
        kind = type(_unwrapped(module)).__name__
        table = self.table
        if self.stack:
            label = f"({kind})"  # in no attribute of the module that calls it
        else:
            self.labels[kind] += any(True for _ in module.parameters())
            label = kind if self.labels[kind] < 2 else f"{kind}.{self.labels[kind]}"
        entries: list[Any] = []
        shared: list[Any] = []
        first: dict[int, str] = {}
        for path, each in module.named_modules():
            if each not in self.names:
                self.names[each] = (table + len(entries), path)
                entries.append([path, type(_unwrapped(each)).__name__, _simple(vars(each))])
        named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers()]
        tensors = []
        for path, each in named:
            if id(each) in first:
                shared.append([path, first[id(each)]])
            elif not isinstance(each, torch.nn.parameter.UninitializedTensorMixin):
                first[id(each)] = path
                tensors.append([path, self.tensor(each)])
        if any(hasattr(each, "_orig_mod") for each in module.modules()):
            self.note("torch.compile: a compiled module is recorded only as a whole")
        if any(isinstance(each, torch.jit.ScriptModule) for each in module.modules()):
            self.note("TorchScript: a scripted module is recorded only as a whole")
        self.roots[table] = weakref.ref(module), label
        self.table += len(entries)
        parent = self.stack[-1] if self.stack else -1
        self.rows.append(["root", table, label, parent, entries, tensors, shared])
        if table == 0:
            self.rows.append(["settings", self.string(json.dumps(settings()))])

    def api(self, function: Any, arguments: Any, options: Any) -> Optional[tuple[Any, ...]]:
        """Before a call of an API: the row without its results; None where it is not recorded."""
        name = _names.get(function)
        if name is None:
            name = _names[function] = _name_of(function)
        if not name or not self.roots or self.stepping:
            return None
        parent = self.stack[-1] if self.stack else -1
        self.seen[name, parent] += 1
        if self.seen[name, parent] > _CALLS:
            return None
        with self.own("API"):
            return parent, name, _described(arguments, options), self.tensors([arguments, options])
        return None

    def after_api(self, row: tuple[Any, ...], result: Any) -> None:
        """After a call of an API: what gave tensors is a row."""
        parent, name, said, given = row
        with self.own("API"):
            made = self.tensors(result)
            if any(each >= 0 for each in made):
                self.rows.append(["api", parent, self.string(name), self.string(said), given, made])

    # Steps.

    def before_step(self, optimizer: Any) -> None:
        """The gradients as the optimizer takes them, and its own settings."""
        self.optimizers.setdefault(optimizer, 0)
        if not self.listens():
            return
        self.stepping = True
        with self.own("optimizer"):
            names = self.parameter_names()
            for number, group in enumerate(optimizer.param_groups):
                simple = {key: _number(value) for key, value in group.items() if key != "params"}
                kind = type(optimizer).__name__
                place = [*self.optimizers].index(optimizer)
                self.rows.append(["optimizer", place, number, kind, self.string(json.dumps(_simple(simple)))])
                for place, each in enumerate(group["params"]):
                    if each.grad is not None:
                        unknown = f"{kind} {number}.{place}"
                        name = names.get(id(each), (unknown, each))[0]
                        self.rows.append(["given", self.string(name), self.tensor(each.grad)])

    def after_step(self, optimizer: Any) -> None:
        """The parameters as the optimizer leaves them; the step ends with its first optimizer's."""
        self.optimizers[optimizer] = self.optimizers.get(optimizer, 0) + 1
        self.stepping = False
        if not self.listens():
            return
        self.stepped = True
        ends = self.optimizers[optimizer] >= max(self.optimizers.values()) > self.step_of_optimizers
        self.known.clear()
        with self.own("optimizer"):
            mine = {id(each) for group in optimizer.param_groups for each in group["params"]}
            names = self.parameter_names()
            for name, each in names.values():
                if id(each) in mine or not isinstance(each, torch.nn.Parameter):
                    self.rows.append(["left", self.string(name), self.tensor(each)])
        if ends:
            self.step_of_optimizers = max(self.optimizers.values())
            self.end_step(keep=True)

    def end_step(self, keep: bool = False) -> None:
        """A step is over; after the last one only printed lines are recorded."""
        self.flush()
        self.step += 1
        self.graded = False
        self.seen.clear()
        if not keep:
            self.known.clear()
        if self.step >= self.steps:
            self.on = False
            self.known.clear()
            with suppress(Exception):
                if not self.same_random and _get_current_function_mode() is self.mode:
                    self.mode.__exit__(None, None, None)

    def parameter_names(self) -> dict[int, tuple[str, Any]]:
        """All parameters and buffers that are known, with the label of their root and their path."""
        found: dict[int, tuple[str, Any]] = {}
        for root, label in self.roots.values():
            module = root()
            for path, each in [] if module is None else [*module.named_parameters(), *module.named_buffers()]:
                found.setdefault(id(each), (f"{label} {path}", each))
        return found

    # Lines.

    def printed(self, stream: int, text: str) -> None:
        """Called with what the program prints: lines with numbers are kept, to the end of the program."""
        *whole, self.line[stream] = (self.line[stream] + text).replace("\r", "\n").split("\n")
        self.line[stream] = self.line[stream][-4 * _LONGEST :]
        for line in whole:
            if self.lines < _LINES and _NUMBER.search(line):
                self.lines += 1
                self.rows.append(["line", stream, self.string(line[:_LONGEST])])
                if not self.on and len(self.rows) > 200:
                    self.flush()


class _Mode(TorchFunctionMode):  # type: ignore[misc]  # torch has no types here
    """Sees the calls of torch's functions and of tensors' methods in a thread."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        options = options or {}
        if _compiling() or self.recorder.busy:
            return function(*arguments, **options)
        recorder = self.recorder
        listens = recorder.apis and not _local.inside and recorder.listens()
        row = recorder.api(function, arguments, options) if listens else None
        draw = drawing.of(function) if recorder.same_random else None
        _local.inside += 1
        try:
            result = draw(function, *arguments, **options) if draw else function(*arguments, **options)
        except TypeError as error:  # arguments that ours does not know
            if draw is None:
                raise
            recorder.note(f"not drawn on the CPU: {function!r}: {error}")
            result = function(*arguments, **options)
        finally:
            _local.inside -= 1
        if row is not None:
            recorder.after_api(row, result)
        return result


class _Local(threading.local):
    inside = 0  # the function of an API: the mode does not see what it calls
    watched = False  # by the mode


_local = _Local()
_names: dict[Any, str] = {}
_compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)


def begin(recorder: Optional[Recorder] = None) -> Recorder:
    """Record this process from now on, as the environment says."""
    env = os.environ
    if recorder is None:
        folder, steps = env["NPUMIGRATE_RECORD"], int(env.get("NPUMIGRATE_RECORD_STEPS", "20"))
        same_random = env.get("NPUMIGRATE_RECORD_RANDOM") == "same"
        recorder = Recorder(folder, steps, env.get("NPUMIGRATE_RECORD_LEVEL", "mix"), same_random)
    if "NPUMIGRATE_RECORD_SEED" in env:
        seed = int(env["NPUMIGRATE_RECORD_SEED"])
        random.seed(seed)
        torch.manual_seed(seed)
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed(seed)
    warnings.filterwarnings("ignore", module="npumigrate_recorder")
    if recorder.apis or recorder.same_random:
        recorder.mode.__enter__()
        _local.watched = True
    if recorder.same_random:
        drawing.replace(lambda: _local.watched and not _local.inside)
    _watch_modules(recorder)
    try:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        register_optimizer_step_pre_hook(lambda optimizer, *_: recorder.before_step(optimizer))
        register_optimizer_step_post_hook(lambda optimizer, *_: recorder.after_step(optimizer))
    except ImportError:
        recorder.note("steps are not recorded: torch is older than 2.0")
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        _watch_lines(recorder, number, stream)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recorder.reset)
    atexit.register(finish, recorder)
    return recorder


def finish(recorder: Recorder) -> None:
    """Write the rest; a process that neither called a module nor printed a number leaves no file."""
    if recorder.line[1] or recorder.line[2]:
        recorder.printed(1, "\n")
        recorder.printed(2, "\n")
    if recorder.roots or recorder.lines:
        recorder.flush()
    if recorder.file >= 0:
        recorder.write(None, zlib.Z_FINISH)
        os.close(recorder.file)
        recorder.file, recorder.packer = -1, zlib.compressobj(5, wbits=31)


def _watch_modules(recorder: Recorder) -> None:
    module: Any = torch.nn.Module
    call = module.__call__

    @wraps(call)
    def recorded(self: Any, *arguments: Any, **options: Any) -> Any:
        if _compiling() or not recorder.listens():
            return call(self, *arguments, **options)
        entered, result = recorder.enter(self, [arguments, options], torch.is_grad_enabled()), None
        try:
            result = call(self, *arguments, **options)
            return result
        finally:
            if entered is not None:
                recorder.leave(entered, result)

    module.__call__ = recorded


def _watch_lines(recorder: Recorder, number: int, stream: Any) -> None:
    write = getattr(stream, "write", None)

    def kept(text: Any) -> Any:
        result = write(text)  # type: ignore[misc]
        try:
            recorder.printed(number, text)
        except Exception as error:
            recorder.note(f"lines: {error!r}")
        return result

    try:
        stream.write = kept
    except AttributeError:
        recorder.note("printed lines are not recorded")


def settings() -> dict[str, Any]:
    """Of this process: versions, and what decides about numbers."""
    found: dict[str, Any] = {"python": platform.python_version(), "machine": platform.machine()}
    for name in ("torch", "torch_npu", "torchvision", "transformers", "apex"):
        found[name] = getattr(sys.modules.get(name), "__version__", None)
    backends, npu = torch.backends, getattr(torch, "npu", None)
    places = {
        "cuda": (torch.version, "cuda"),
        "cudnn.allow_tf32": (backends.cudnn, "allow_tf32"),
        "cudnn.benchmark": (backends.cudnn, "benchmark"),
        "cudnn.deterministic": (backends.cudnn, "deterministic"),
        "matmul.allow_tf32": (backends.cuda.matmul, "allow_tf32"),
        "npu.matmul.allow_hf32": (getattr(npu, "matmul", None), "allow_hf32"),
        "npu.conv.allow_hf32": (getattr(npu, "conv", None), "allow_hf32"),
    }
    for name, (place, attribute) in places.items():
        try:
            found[name] = getattr(place, attribute, None)
        except Exception as error:  # a wrong mixture of the settings of TF32 raises
            found[name] = repr(error)
    found["threads"], found["seed"] = torch.get_num_threads(), torch.initial_seed()
    found["default_dtype"] = str(torch.get_default_dtype())[6:]
    found["deterministic"] = torch.are_deterministic_algorithms_enabled()
    return found


def _rank() -> Optional[int]:
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdigit() else None


def _unwrapped(module: Any) -> Any:
    inside = dict(module.named_children())
    wrapped = next((inside[name] for name in _WRAPPERS if name in inside), None)
    return module if wrapped is None or len(inside) > 1 else _unwrapped(wrapped)


def _name_of(function: Any) -> str:
    """The name of an API; empty for one that is not recorded."""
    name = resolve_name(function) or f"{getattr(function, '__name__', '')}"
    last = name.rpartition(".")[2]
    if last in _UNSEEN or last in ("__get__", "__set__", "__delete__", "") or ".init." in name:
        return ""
    return name.replace("torch.", "", 1).replace("nn.functional", "functional")


def _tensors_in(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 5:
        if isinstance(value, (list, tuple)):
            inside: Any = value
        elif isinstance(value, dict):
            inside = value.values()
        else:
            inside = vars(value).values() if hasattr(type(value), "__dataclass_fields__") else ()
        for each in inside:
            yield from _tensors_in(each, depth + 1)


def _described(arguments: Any, options: Any) -> str:
    """The arguments of an API that are no tensors."""
    said = [_said(each) for each in arguments]
    said += [
        f"{key}={_said(value)}" for key, value in sorted(options.items()) if key not in ("device", "out")
    ]
    return ", ".join(said)[:_LONGEST]


def _said(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "T"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_said, value[:16]))}]"
    return str(value) if isinstance(value, torch.dtype) else type(value).__name__


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value


def _simple(values: dict[str, Any]) -> dict[str, Any]:
    """What of a module's or an optimizer's attributes is a setting."""

    def plain(value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return len(value) < 9 and all(map(plain, value))
        return value is None or isinstance(value, (bool, int, float, str))

    kept = {key: value for key, value in values.items() if not key.startswith("_") and plain(value)}
    return {key: value if not isinstance(value, str) else value[:80] for key, value in kept.items()}
