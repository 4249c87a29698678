"""Whether the scripts and the Python of a migrated project fit together: what one passes, the other takes.

It looks at the result. What did not fit before the migration is not its affair.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Optional

from migrator.api_support import env_vars
from migrator.data_folders import reports_yaml
from migrator.files.document import document, file_type
from migrator.files.errors import Unreadable, shown
from migrator.files.source import read_bytes
from migrator.findings.finding import Finding, Result
from migrator.language import _
from migrator.light import Frozen
from migrator.matchers.kinds.setting import is_value
from migrator.other_files.index import Content, NotParsedError, Setting, Span, TextIndex, has_reader, read
from migrator.project.parser_options import Option
from migrator.project.programs import Parsers, Programs, Vocabularies, taken

CODES = frozenset(f"NPU94{number}" for number in range(6))  # reports/consistency.yaml has what they find
_OF_CUDA = re.compile(r"cuda(?::\d*)?\Z|nccl\Z")
_STARTS_PYTHON = (b".py", b"python", b"torchrun", b"launch")
_VARIABLES = (b"CUDA", b"NCCL", b"CUDNN", b"ASCEND", b"HCCL", b"NPU", b"ACL", b"HOROVOD")
_DEVICES = (b"cuda", b"nccl", b"npu", b"hccl")
_OF_NPUS = re.compile(r"npu(?::\d*)?\Z|hccl\Z")
_IMPORTS_HOROVOD = r"^[ \t]*(?:import|from)[ \t]+horovod\b"

# Texts by name, each before and after; see _indexes.
_Texts = Mapping[str, tuple[Optional[TextIndex], Optional[TextIndex]]]


class Trees(Frozen):
    """The input and the result: the Python files of both, and the paths of their texts by name.

    ``vocabularies`` gives those for devices and backends: they are made only where a value has to be judged.
    ``told`` are the lines of texts of which a finding says already that CUDA is left there. ``keys`` says of
    files of data, by their names, where the program looks up devices in their keys.
    """

    before: Programs
    after: Programs
    texts: Mapping[str, tuple[Path, Path]]
    vocabularies: Callable[[], Vocabularies]
    told: frozenset[tuple[str, int]] = frozenset()
    keys: Mapping[str, str] = field(default_factory=dict)


def mismatches(
    trees: Trees, progress: Callable[[str, int, int], object] = lambda stage, done, total: None
) -> Iterator[Result]:
    """The files of the result that pass on what nothing takes, or do not what is expected of them."""
    wanted = {name: paths for name, paths in trees.texts.items() if has_reader(file_type(name) or "shell")}
    texts = {name: _indexes(name, *paths) for name, paths in wanted.items()}
    found: dict[str, list[Finding]] = {name: [] for name in texts}
    for number, (name, (before, after)) in enumerate(texts.items(), 1):
        progress("comparing", number, len(texts))
        if after is not None and any(word in after.data for word in _STARTS_PYTHON):
            found[name] += _options(trees, before, after)
        if after is not None and any(word in after.data for word in _DEVICES):
            found[name] += _looked_up(trees, before, after)
    for name, finding in _variables(trees, texts):
        found[name].append(finding)
    for name, findings in found.items():
        if findings:
            unique = sorted(dict.fromkeys(findings), key=lambda item: (item.line, item.column))
            yield Result(shown(name), tuple(unique), type=file_type(name) or "shell")


def _indexes(name: str, before: Path, after: Path) -> tuple[Optional[TextIndex], Optional[TextIndex]]:
    """A text before and after, the same object where it did not change; None where it tells nothing."""
    try:
        old, new = read_bytes(before), read_bytes(after)
        if not any(word in new for word in (*_STARTS_PYTHON, *_VARIABLES, *_DEVICES)):
            return None, None
        first = _index(name, old)
        return first, first if old == new else _index(name, new)
    except (OSError, Unreadable, NotParsedError):
        return None, None


def _index(name: str, data: bytes) -> Optional[TextIndex]:
    item = document(data, name)
    return read(name, item.type, item.text) if item.type else None


# -- options of programs --------------------------------------------------------


def _options(trees: Trees, before: Optional[TextIndex], after: TextIndex) -> Iterator[Finding]:
    given_before = _values(before)
    for setting in after.content.settings:
        if setting.kind not in ("option", "argument"):
            continue
        value = setting.value or setting.begins
        if setting.kind == "argument" and not (_OF_CUDA.match(value) or _OF_NPUS.match(value)):
            continue  # no other one changes
        parsers = trees.after.asked(after.name, after.content, setting)
        old = trees.before.asked(after.name, after.content, setting) if parsers is not None else None
        if parsers is None or old is None:
            continue
        program = after.content.program_of(setting)
        file = trees.after.started(after.name, after.content, program) if program is not None else ""
        file = file or _("started programs")
        now, then = _meant(parsers, after.content, setting), _meant(old, after.content, setting)
        # A parser that names CUDA was left as it was, as where only safe fixes are made.
        is_kept = any(_OF_CUDA.match(str(text)) for each in now for text in (each.default, *each.choices))
        line = after.lines.line_of(setting.name_span[0])
        given = given_before.get((line, _label(after, setting)), frozenset())
        name = now[0].name if now and setting.kind == "argument" else setting.name
        place = setting.value_span or setting.name_span
        if then and not now:
            yield _finding("no option", after, setting.name_span, setting.name, file=file, name=setting.name)
        elif _refuses(now, setting.value) and not any(_refuses(then, each) for each in given):
            choices = ", ".join(str(choice) for option in now for choice in option.choices)
            values = {"file": file, "choices": choices, "name": name, "value": setting.value}
            yield _finding("no choice", after, place, str(setting.value), **values)
        elif now and _OF_CUDA.match(value) and not is_kept:
            means = taken(parsers, after.content, setting, trees.vocabularies())
            if means is not None and means.device:
                yield _finding("option of CUDA", after, place, value, file=file, name=name, value=value)


def _values(index: Optional[TextIndex]) -> dict[tuple[int, str], frozenset[str]]:
    """What options were given before, by line and name."""
    found: dict[tuple[int, str], frozenset[str]] = {}
    for setting in index.content.settings if index is not None else ():
        if setting.kind in ("option", "argument") and setting.value:
            assert index is not None
            key = (index.lines.line_of(setting.name_span[0]), _label(index, setting))
            found[key] = found.get(key, frozenset()) | {setting.value}
    return found


def _label(index: TextIndex, setting: Setting) -> str:
    """What tells a setting from the others of its line: an option's name, the place of an argument."""
    if setting.kind != "argument" or setting.command is None:
        return setting.name
    words = index.content.commands[setting.command].words
    return str(sum(word.span[0] < setting.name_span[0] for word in words))


def _meant(parsers: Parsers, content: Content, setting: Setting) -> list[Option]:
    return [option for _, option in parsers.meant(content, setting)]


def _refuses(options: list[Option], value: Optional[str]) -> bool:
    """Whether none of the parsers that have an option takes a value."""
    if not value or not options:
        return False
    return all(option.choices and value not in map(str, option.choices) for option in options)


# -- what Python looks up by a name -----------------------------------------------


def _looked_up(trees: Trees, before: Optional[TextIndex], after: TextIndex) -> Iterator[Finding]:
    """Keys and variables that are CUDA's where Python takes NPUs, and NPUs' where it knows CUDA alone."""
    given = {item.name: item.value for item in before.content.settings} if before is not None else {}
    asked, told = trees.keys.get(posixpath.basename(after.name)), set[str]()
    for setting in after.content.settings:
        for key in setting.name.split(".") if setting.kind == "key" and asked else ():
            if _OF_CUDA.match(key) and setting.name.partition(key)[0] not in told:
                told.add(setting.name.partition(key)[0])
                yield _finding("key that is CUDA's", after, setting.name_span, key, name=key, where=asked)
        value = setting.value or ""
        in_environment = setting.kind == "variable" and not setting.reads
        if (setting.kind != "key" and not in_environment) or is_value(trees.after, after, setting):
            continue
        keys = (part for part in reversed(setting.name.split(".")) if not part.isdecimal())
        name = setting.name if in_environment else next(keys, setting.name)
        span = setting.value_span or setting.name_span
        line = after.lines.line_of(span[0])
        if _OF_CUDA.match(value) and (after.name, line) not in trees.told:
            verdicts = trees.after.looked_up(name, value == "nccl", in_environment, trees.vocabularies())
            if "certain" in verdicts:
                yield _finding("key of CUDA", after, span, value, name=name, value=value)
        elif _OF_NPUS.match(value) and given.get(setting.name) not in (None, value):
            where = _compared_with_cuda(trees.after, name)
            if where:
                yield _finding(
                    "key compared with CUDA", after, span, value, name=name, value=value, where=where
                )


def _compared_with_cuda(programs: Programs, name: str) -> str:
    """The first place at which Python compares what it looks up by a name with CUDA's devices, not NPUs'."""
    pattern = (
        rf"""(?:\[["']{re.escape(name)}["']\]|\(["']{re.escape(name)}["'][^()\n]*\)|\.{re.escape(name)})"""
        r"""[ \t]*(?:==|!=|(?:not[ \t]+)?in\b)[ \t]*([^\n]*)"""
    )
    compared = (
        place
        for found, place in _places(programs, pattern, name)
        if re.search(r"""["'](?:cuda|nccl)["':]""", found[1]) and not re.search(r"npu|hccl", found[1])
    )
    return next(compared, "")


def _places(programs: Programs, pattern: str, word: str = "") -> Iterator[tuple[re.Match[str], str]]:
    """What a pattern finds in the Python files that hold a word, each with its file and line."""
    for file in programs.files:
        text = programs.text(file) or ""
        for found in re.finditer(pattern, text, re.M) if word in text else ():
            yield found, f"{shown(file)}:{text.count(chr(10), 0, found.start()) + 1}"


# -- variables of the environment -----------------------------------------------


def _variables(trees: Trees, texts: _Texts) -> Iterator[tuple[str, Finding]]:
    """Variables that a script sets and no Python reads any longer, and those that Python still reads.

    Horovod's, where no Python imports Horovod any longer.
    """
    known = env_vars.known()
    renamed = {name: each.npu for name, each in known.items() if each.npu and each.npu != name}
    pairs = {**renamed, **{new: old for old, new in renamed.items()}}
    sets = [
        (name, after, _set_in(before), _set_in(after))
        for name, (before, after) in texts.items()
        if after is not None
    ]
    wanted = {each for *_, then, now in sets for each in (*then, *now) if each in pairs}
    then = _read_in(trees.before, wanted)
    now = _read_in(trees.after, wanted | {pairs[each] for each in wanted})

    @cache
    def horovod_is_gone() -> bool:
        both = (trees.before, trees.after)
        before, after = (any(_places(each, _IMPORTS_HOROVOD, "horovod")) for each in both)
        return before and not after

    for name, after, given, gives in sets:
        for variable, setting in gives.items():
            other, said = pairs.get(variable), ""
            if variable.startswith("HOROVOD_") and horovod_is_gone():
                said = "variable of Horovod"
            elif other in now and variable not in now:
                if variable in then:
                    said = "variable renamed there"
                elif variable not in given and other in given:
                    said = "variable renamed here"
            if said:
                values = {"variable": variable, "now": now.get(other or ""), "other": other}
                yield name, _finding(said, after, setting.name_span, variable, **values)


def _set_in(index: Optional[TextIndex]) -> dict[str, Setting]:
    settings = index.content.settings if index is not None else ()
    return {item.name: item for item in settings if item.kind == "variable" and not item.reads}


def _read_in(programs: Programs, names: Iterable[str]) -> dict[str, str]:
    """Where Python names a variable as a string, and does not set it: the first file and line of each."""
    pattern = rf"""(["'])({"|".join(map(re.escape, sorted(names)))})\1(?!\]\s*=[^=])"""
    found: dict[str, str] = {}
    for match, place in _places(programs, pattern) if names else ():
        found.setdefault(match[2], place)
    return found


def _finding(said: str, index: TextIndex, span: Span, api: str, **values: object) -> Finding:
    """What ``reports/consistency.yaml`` says of a place."""
    found = reports_yaml("consistency.yaml")[said]
    message, advice = _(found["message"], **values), _(found["advice"], **values)
    place = index.lines.ends(span)
    return Finding(found["rule"], message, *place, found["severity"], api=api, advice=advice, span=span)
