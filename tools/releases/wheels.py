"""Which names a wheel's modules hold, read from its sources without running them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, Optional

from tools.releases.archive import Archive, WheelError
from tools.releases.bindings import FUNCTIONS, Package, Sources, stored, top_level
from tools.releases.operator_lists import Natives, Operators, read_natives, read_operators
from tools.releases.torch_facts import Release, read
from tools.releases.torch_table import PACKAGES

# Modules whose names a CUDA program uses, and their NPU equivalents.
WANTED = (
    "torch.backends.cuda",
    "torch.backends.cudnn",
    "torch.cuda",
    "torch.profiler",
    "torch_npu.distributed",
    "torch_npu.npu",
    "torch_npu.profiler",
)
# Of these, the submodules too.
WANTED_BELOW = ("torch.cuda", "torch_npu.npu")
# Where torch_npu keeps what only it has.
OWN = ("torch_npu.contrib", "torch_npu.jit", "torch_npu.optim", "torch_npu.utils")

# Modules into which names are put when they are imported: their __all__ shows which. Elsewhere
# __all__ is no proof: torch_npu.contrib lists a name that it has not.
_FILLED = ("torch_npu", "torch_npu.npu.aclnn")
# Where the names of torch's compiled part stand, on each platform.
_COMPILED = re.compile(r"torch/lib/(lib)?torch_python\.(so|dylib|dll)")

Names = dict[str, str]  # name -> class | function | module | value | import


class Wheel(NamedTuple):
    """What was read of one wheel."""

    package: str
    torch_version: str
    release: str
    modules: dict[str, Names]  # the wanted modules with their names
    switches: dict[str, str]  # of torch only: a column of versions.csv -> yes | no
    operators: Optional[Operators]  # of torch_npu only
    own_names: frozenset[str]  # of torch_npu only: qualified names of what only it has
    public: Optional[Release] = None  # of torch, torchvision and torchaudio only: all public names
    natives: Natives | None = None  # of torch only: what it has for its operators


def read_wheel(path: Path) -> Wheel:
    """Read a torch, torchvision, torchaudio or torch_npu wheel, as an archive: nothing in it is run or
    unpacked.

    Raises WheelError, a ValueError, where the file is none of these, or damaged.
    """
    archive = Archive(path)
    try:
        package, release = archive.package_and_release()
        found = re.match(r"\d+\.\d+\.\d+(?=$|[.+a-z])", release)
        if package not in (*PACKAGES, "torch_npu") or not found:
            of = "torch, torchvision, torchaudio or torch_npu"
            raise WheelError(f"{path.name} is no wheel of {of}, but {package} {release}")
        if package in ("torchvision", "torchaudio"):
            public = read_names(archive, package)
            return Wheel(package, archive.needed_torch(), release, {}, {}, None, frozenset(), public)
        if package == "torch":
            names, public = module_names(_sources(archive, package)), read_names(archive, package)
            switches, natives = _switches(archive), read_natives(archive)
            return Wheel(package, found.group(), release, names, switches, None, frozenset(), public, natives)
        operators = read_operators(archive)
        names, own_names = _npu_names(archive)
        return Wheel(package, found.group(), release, names, {}, operators, own_names)
    except (SyntaxError, RecursionError, MemoryError):
        raise WheelError(f"{path.name} is damaged: a Python source in it does not parse") from None
    finally:
        archive.close()


def _npu_names(archive: Archive) -> tuple[dict[str, Names], frozenset[str]]:
    sources = _sources(archive, "torch_npu")
    if "torch_npu.npu" not in sources:
        raise WheelError(f"{archive.path.name} has no torch_npu/npu/__init__.py: it is no complete wheel")
    modules = _Modules(sources)
    own_names = {f"{module}.{name}" for module in _FILLED for name in modules.exported(module)}
    for module in sources:
        for name, kind in modules.names(module).items():
            if kind != "module":
                own_names.add(f"{module}.{name}")
            if kind == "class":
                own_names |= {f"{module}.{name}.{member}" for member in modules.members.get(name, ())}
    # The compiled distributed classes, as far as the wheel's Python part uses them by name.
    compiled = "torch_npu._C._distributed_c10d"
    entries = (entry for entry in archive.entries if entry.startswith("torch_npu/") and entry.endswith(".py"))
    used = "\n".join(map(archive.text, entries))
    classes = dict.fromkeys(re.findall(re.escape(compiled) + r"\.([A-Z]\w+)", used), "class")
    return {**modules.wanted(), compiled: classes}, frozenset(own_names)


def module_names(sources: Sources) -> dict[str, Names]:
    """Names of every wanted module.

    ``sources`` has, by module name, whether it is a package and how its text is read. A name counts wherever
    its module binds it at the top level, under a condition or not: what is bound under an ``if`` or a ``try``
    is there in an ordinary installation of these two packages.
    """
    return _Modules(sources).wanted()


def read_names(archive: Archive, package: str) -> Release:
    """What the package in a wheel offers. Raises WheelError for a damaged wheel, SyntaxError for a source."""
    words: frozenset[str] = frozenset()
    if package == "torch":
        words = words.union(
            *(archive.words(entry) for entry in archive.entries if _COMPILED.fullmatch(entry))
        )
    return read(Package(texts(archive, package, ".py"), texts(archive, package, ".pyi")), package, words)


def texts(archive: Archive, package: str, ending: str) -> Sources:
    """The files of a kind by their module."""
    found: Sources = {}
    for entry in archive.entries:
        parts = entry.removesuffix(ending).split("/")
        if not entry.endswith(ending) or parts[0] != package or not all(map(str.isidentifier, parts)):
            continue
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        found[module] = is_package, partial(archive.text, entry)
    return found


def _sources(archive: Archive, package: str) -> Sources:
    """The modules whose names are wanted, and their siblings: a wanted one may import names from them."""
    return {
        module: source
        for module, source in texts(archive, package, ".py").items()
        if module == "torch_npu" or any(f"{module}.".startswith(f"{name}.") for name in (*WANTED, *OWN))
    }


def _switches(archive: Archive) -> dict[str, str]:
    """What torch itself does or has, as seen in its sources and headers."""
    header = archive.text("torch/include/torch/csrc/utils/python_arg_parser.h")
    # What turns a Python int into a device: deviceFromLong() from torch 2.3 on, before
    # it a branch in toDevice() (2.1, 2.2) or in PythonArgs::device(). The older ones
    # name CUDA and nothing else; the newer ask whether another backend is registered.
    start = re.search(r"at::Device (deviceFromLong|toDevice|PythonArgs::device)\([^)]*\) \{", header)
    branch = re.match(r"(?s).*?^\}", header[start.end() :], re.M) if start else None
    if not branch:
        raise WheelError("python_arg_parser.h has no toDevice(): read it and adapt this function")
    init = archive.text("torch/__init__.py")
    cuda = archive.text("torch/cuda/__init__.py")
    has_amp = "torch/amp/__init__.py" in archive.entries
    amp = archive.text("torch/amp/__init__.py") if has_amp else ""
    found = {
        "int_device_is_npu": re.search(r"(?i)privateuse1|accelerator", branch.group()),
        "has_set_default_device": re.search(r"def set_default_device\(", init),
        # torch takes every public name of its compiled part; torch.cuda shows which it has.
        "has_oom_error": re.search(r"torch\._C\.OutOfMemoryError\b", cuda),
        "has_amp_grad_scaler": re.search(r"\bGradScaler\b", amp),
        "autoloads_backends": re.search(r"def _import_device_backends\(", init),
    }
    return {switch: "yes" if match else "no" for switch, match in found.items()}


class _Modules:
    """Names of modules, each worked out once: they import from one another."""

    def __init__(self, sources: Sources) -> None:
        self._package = Package(sources, {})
        self._known: dict[str, Names] = {}
        # By the class's name alone: it is bound elsewhere under the same one.
        self.members: dict[str, set[str]] = {}
        for module in sources:
            for node in self._package.tree(module).body:
                if isinstance(node, ast.ClassDef):
                    members = {leaf.name for leaf in node.body if isinstance(leaf, FUNCTIONS)}
                    self.members.setdefault(node.name, set()).update(members)

    def wanted(self) -> dict[str, Names]:
        """The names of every module whose names a CUDA program, or its NPU equivalent, uses."""
        return {
            name: self.names(name)
            for name in sorted(self._package.modules)
            if name in WANTED or any(name.startswith(other + ".") for other in WANTED_BELOW)
        }

    def names(self, module: str) -> Names:
        """What a module binds, or {} where its source was not read."""
        if module in self._known or module not in self._package.modules:
            return self._known.get(module, {})
        # Entered before it is complete, so that a circle of imports ends.
        names = self._known[module] = {}
        if self._package.modules[module][0]:
            # A submodule is an attribute once something imported it; in these
            # two packages importing the package itself imports them.
            pairs = (other.rpartition(".") for other in self._package.modules)
            names.update((last, "module") for parent, _, last in pairs if parent == module)
        for node, _ in top_level(self._package.tree(module).body):
            # `from .graphs import graph` binds over a submodule of that name.
            names.update(self._bound(node, module))
        for name in self.exported(module):
            # FloatTensor and its like are set by the compiled part.
            if name.endswith("Tensor"):
                names.setdefault(name, "class")
        for name in [name for name in names if name.startswith("__")]:
            del names[name]
        return names

    def exported(self, module: str) -> frozenset[str]:
        """What a module lists in its ``__all__``."""
        return self._package.exported(module) if module in self._package.modules else frozenset()

    def _bound(self, node: ast.stmt, module: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.ClassDef):
            yield node.name, "class"
        elif isinstance(node, FUNCTIONS):
            yield node.name, "function"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0], "import"
        elif isinstance(node, ast.ImportFrom):
            source = self._package.absolute(node, module)
            for alias in node.names:
                if alias.name == "*":
                    yield from self._starred(source)
                else:
                    yield alias.asname or alias.name, self._kind(source, alias.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((name, "value") for name in stored(targets))

    def _kind(self, source: str, name: str) -> str:
        """What an imported name is: its kind where the wheel shows it."""
        if source in self._package.modules:
            return self.names(source).get(name, "import")
        # A name out of a package's compiled part belongs to it; any other import
        # (typing, os, torch._utils ...) is merely in sight.
        return "value" if re.match(r"torch(_npu)?\._C(\.|$)", source) else "import"

    def _starred(self, source: str) -> Iterator[tuple[str, str]]:
        exported = self.exported(source)
        for name, kind in self.names(source).items():
            if name in exported if exported else not name.startswith("_"):
                yield name, kind
