"""Files other than Python that look as if they need changes: they are named, not touched."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Optional

from migrator.api_support import env_vars
from migrator.api_support.libraries import equivalents_of, known_operator
from migrator.files.discover import Entry
from migrator.files.document import Document, document_type
from migrator.files.errors import shown
from migrator.files.notebook import Notebook
from migrator.files.notebook_parts import left_lines
from migrator.findings.finding import Finding, Result, Severity
from migrator.language import N_, _
from migrator.native.inventory import inventory
from migrator.native.model import CUDA_SUFFIXES, MAX_BYTES, NATIVE_SUFFIXES, Use
from migrator.project.operators import Catalog, Operator

# Others have a type: files/document.py.
_TEXTS = frozenset(".conf .cmake .bat .ps1 .j2 .pyx .pxd .lock".split())
_DOCUMENTS = frozenset({".md", ".rst", ".txt"})  # they speak of CUDA without needing a change
_SCRIPTS = _TEXTS - {".cmake", ".pyx", ".pxd", ".lock"}  # what a build needs of CUDA is not to be renamed
_NAMES = re.compile(r"CMakeLists\.txt", re.I)

_MENTION = re.compile(
    # The last folder of /usr/local/cuda is no device.
    rb"\b(?:CUDA_\w+|PYTORCH_CUDA\w*|T?O?R?C?H?_?NCCL_\w+|(?<!/)cuda(?::\d+)?(?!/|[-.]\w)|nccl|nvidia-smi"
    rb"|nvidia/cuda|nvcc|horovodrun"
    # Packages that need CUDA, torch's builds for it, and Lightning's accelerator.
    rb"|cudatoolkit|flash[-_]attn|xformers|bitsandbytes|pynvml|nvidia-ml-py|cupy-cuda\w*|faiss-gpu|onnxruntime-gpu"
    rb"|nvidia-\w+-cu\d+|mamba[-_]ssm|causal[-_]conv1d|\+cu\d{2,3}|whl/cu\d{2,3}|accelerator: (?:gpu|auto))\b"
)
# The scripts of other frameworks than PyTorch, as ``train.py:tensorflow``; None where all are.
Foreign = Optional[Collection[str]]
_LAUNCHERS = (b"horovodrun", b"mpirun", b"mpiexec")
_LEFT = N_("not Python: left unchanged")
_CUDA_CODE = re.compile(
    rb"\bcuda(?:Stream|Malloc|_runtime|Error)|ATen/cuda|c10/cuda|\bcu(?:blas|dnn|sparse)\w*|__global__"
)


# Lines of scripts and configurations that name CUDA's variables, devices or backends.
VARIABLE, DEVICE = "NPU404", "NPU124"

_WORD = re.compile(
    r"""(?P<name>\b[A-Z][A-Z0-9_]{4,}\b)"""
    r"""(?:["']?[ \t]*[:=][ \t]*(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s"';&|}]*))?"""
)
# What a key's name begins with is not read, and of two repetitions in a row none can take what the other can:
# otherwise a line of 20,000 dashes or blanks would take minutes.
_DEVICE = re.compile(
    r"""(?:device|backend|map_location)s?\b["']?(?:[ \t]*[:=]|\t* )[ \t\[]*"""
    r"""["']?(?P<value>cuda(?::\d+)?|nccl)(?![\w.:/-])""",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"\s*(?:#|//|;|::|REM\b)")
_FORMS = {"cuda": "npu", "nccl": "hccl"}


def is_candidate(name: str) -> bool:
    """Whether a file's name says that it may hold something about CUDA."""
    path = PurePosixPath(name)
    return path.suffix.lower() in NATIVE_SUFFIXES | _TEXTS | _DOCUMENTS or bool(_NAMES.fullmatch(path.name))


def look_at(
    entry: Entry, operators: Catalog, foreign: Foreign = (), known: Iterable[Use] | None = None
) -> Result | None:
    """What ``examine`` says of a file, without its name's odd characters.

    None also where it is larger than MAX_BYTES or cannot be read.
    """
    try:
        if entry.path.stat().st_size > MAX_BYTES:
            return None
        result = examine(entry.name, entry.path.read_bytes(), operators, foreign, known)
    except OSError:
        return None
    return result._replace(name=shown(entry.name)) if result else None


def examine(
    name: str, data: bytes, operators: Catalog, foreign: Foreign = (), known: Iterable[Use] | None = None
) -> Result | None:
    """What a person has to know of a file that is not Python; None where it has nothing to do with CUDA.

    C++ and CUDA sources come with a finding for each of the project's ``operators`` that they define, and of
    what they take from CUDA, where that is not ``known`` already; other texts with the first place that
    mentions CUDA, and scripts and configurations with each line that names a variable, a device or a backend.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in NATIVE_SUFFIXES:
        defined = operators.in_file.get(name, ())
        if suffix not in CUDA_SUFFIXES and not defined and not _CUDA_CODE.search(data):
            return None
        uses = map(_use, inventory(data.decode("utf-8", "replace")) if known is None else known)
        findings = tuple(sorted((*map(_finding, defined), *uses), key=lambda item: item.line))
        return Result(name, findings=findings, left=_("CUDA source: not migrated; see cuda_op_list.csv"))
    text = data.decode("utf-8", "replace")
    findings = _launchers(data, text, foreign)
    if suffix in _DOCUMENTS and not _NAMES.fullmatch(PurePosixPath(name).name) and not findings:
        return None
    what = _what_of_cuda(data, findings)
    if suffix in _SCRIPTS and _MENTION.search(data):
        findings = (*findings, *find_lines(text))
    lock = N_("lock file: regenerate it for the migrated requirements")
    before = _(lock if suffix == ".lock" else _LEFT)
    return Result(name, findings=findings, left=f"{before}; {what}") if what else None


def _launchers(data: bytes, text: str, foreign: Foreign) -> tuple[Finding, ...]:
    """The lines of a text that start programs of PyTorch over MPI."""
    if foreign is None or not any(mark in data for mark in _LAUNCHERS):
        return ()
    from migrator.launch.mpi import find_lines as launcher_lines  # few projects have them

    return tuple(launcher_lines(text, foreign))


def _what_of_cuda(data: bytes, launchers: Sequence[Finding]) -> str:
    """What a text says of CUDA, or with what it starts programs; empty for nothing of both."""
    found = _MENTION.search(data)
    if found is not None:
        line = data.count(b"\n", 0, found.start()) + 1
        words = {match.decode("ascii") for match in _MENTION.findall(data)}
        return _("mentions {words} (first in line {line})", words=", ".join(sorted(words)[:4]), line=line)
    for first in launchers[:1]:
        return _("starts programs with {api} (first in line {line})", api=first.api, line=first.line)
    return ""


def with_mentions(result: Result, document: Document, foreign: Foreign = ()) -> Result:
    """The result of a text that rules looked at, with what none of them is about.

    Where the rules could not read it, lines that look like settings are named instead.
    """
    data = document.text.encode("utf-8", "replace")
    findings = list(result.findings)
    if document.type not in ("shell", "makefile"):
        findings += _launchers(data, result.text or document.text, foreign)
    # A document mentions CUDA without needing a change.
    is_asked = result.text is None and not document_type(document.name)
    if is_asked and result.left and _MENTION.search(data):
        findings += find_lines(document.text)
    what = _what_of_cuda(data, () if result.findings else findings) if is_asked else ""
    left = f"{result.left or _('left unchanged')}; {what}" if what else ""
    findings.sort(key=lambda item: (item.line, item.column, item.code))
    return result._replace(findings=tuple(findings), left=left)


def beside_python(notebook: Notebook, known: Collection[int]) -> Result | None:
    """What a person has to know of what is neither Python in a notebook nor one of its parts.

    ``known`` are the cells that parts hold. None where it has nothing to do with CUDA.
    """
    texts = ((cell, text.encode("utf-8", "replace")) for cell, text in left_lines(notebook, known))
    named = ((cell, _MENTION.findall(text) + _CUDA_CODE.findall(text)) for cell, text in texts)
    found = [(cell, word) for cell, words in named for word in words]
    if not found:
        return None
    said = N_("parts in other languages are left unchanged; mentions {listed} (first in cell {found})")
    words = sorted({word.decode("ascii") for _, word in found})
    left = _(said, listed=", ".join(words[:4]), found=min(found)[0])
    return Result(shown(notebook.name), left=left)


def _use(use: Use) -> Finding:
    """A library of CUDA in a source, or the launch of a kernel."""
    about = {"name": use.name, "times": _(" ({count} times)", count=use.count) if use.count > 1 else ""}
    if use.route:
        return _at("NPU656", use.name, use.line, _("{name} is used{times}", **about), use.route, "info")
    advice = _("Only its kernel needs it: write an Ascend C kernel, or use torch operators.")
    return _at("NPU657", use.name, use.line, _("kernel {name} is started{times}", **about), advice, "info")


def _finding(operator: Operator) -> Finding:
    message = f"CUDA kernel {operator.name}"
    if operator.kind != "kernel":
        message = _("operator {name} for Python: {reason}", name=operator.name, reason=operator.reason)
    known = None if operator.kind == "kernel" else known_operator(operator.name, operator.file)
    unknown = N_("Use PyTorch or torch_npu operators instead, or write an Ascend C operator.")
    advice = equivalents_of(known) if known else _(unknown)
    if operator.npu:
        advice = _("The sources include an implementation for NPUs: build the extension with it.")
    return _at("NPU652", operator.name, operator.line, message, advice, "info" if operator.npu else "error")


def find_lines(text: str) -> Iterator[Finding]:
    """A finding for each such place, but in comments. No line is changed: its reader knows what it means."""
    for number, line in enumerate(text.split("\n"), 1):
        if _COMMENT.match(line):
            continue
        seen: set[str] = set()
        for found in _WORD.finditer(line):
            if found["name"] not in seen:
                seen.add(found["name"])
                yield from _variable(found, number)
        for found in _DEVICE.finditer(line):
            value = found["value"]
            name, colon, index = value.partition(":")
            new = _FORMS[name.lower()] + colon + index
            what = "device" if name.lower() == "cuda" else "backend"
            message = _("on NPUs the {what} {value} is {new}", what=_(what), value=value, new=new)
            advice = _("Write {new}.", new=new)
            yield _at(DEVICE, value, number, message, advice, "warning", found.start("value"))


def _variable(found: re.Match[str], line: int) -> Iterator[Finding]:
    known = env_vars.look_up(found["name"])
    if known is None or known.npu == known.name:
        return
    value, advice = (found["value"] or "").strip("\"'"), known.advice
    message = known.on_npus(_("; the values differ"))
    if known.npu and (not value or env_vars.carries_over(known, value)):
        message = known.on_npus()
        advice = _("Write {npu}{value}.", npu=known.npu, value="=" + value if value else "")
    elif known.npu and (bad := env_vars.refused(known, value)):
        message = known.refuses(bad)
    severity: Severity = "warning" if known.npu else "info"
    yield _at(VARIABLE, known.name, line, message, advice, severity, found.start("name"))


def _at(
    code: str, api: str, line: int, message: str, advice: str, severity: Severity, column: int | None = None
) -> Finding:
    """A finding at a place in a line; without a column at a line of a source."""
    start, end = (1, 1) if column is None else (column + 1, column + 1 + len(api))
    return Finding(code, message, line, start, line, end, severity, api=api, advice=advice)
