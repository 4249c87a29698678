"""Programs on horovod.torch become programs on torch.distributed and DistributedDataParallel."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from migrator.convert.draft import Draft, UncertainError, converted
from migrator.convert.horovod.calls import Plan, plan_names, references, refuse_branches
from migrator.convert.horovod.optimizer import plan_optimizer, plan_synchronize
from migrator.convert.horovod.tables import PACKAGE, helpers, import_order
from migrator.convert.load import UNREADABLE, load
from migrator.convert.models import free_models
from migrator.convert.program import File, Program, read_file
from migrator.convert.syntax import is_main_guard
from migrator.convert.texts import names_in
from migrator.convert.write import NotPlacedError
from migrator.core.check import Converted
from migrator.findings.finding import internal_error
from migrator.names.statements import statements_below
from migrator.names.tree import parse
from migrator.project.imports import Read, imported_files

_IMPORTS = (ast.Import, ast.ImportFrom)
_CHANGED, _REPORTED = "NPU930", "NPU931"
_OWN_WAY = ("init_process_group", "DistributedDataParallel")
_OLDEST = (1, 11)  # torch 1.8.1 has no ReduceOp.AVG
_STEPS = ("init", "DistributedOptimizer", "broadcast_parameters", "broadcast_optimizer_state", "allreduce")
_NAMES = ("dist", "gc", "os", "default_hooks", "DistributedDataParallel")
_NAMES_OF_HELPERS = ("io", "json", "subprocess", "sys")


def convert(
    names: Sequence[str], others: Iterable[str], read: Read, version: tuple[int, ...]
) -> dict[str, Converted]:
    """What becomes of the files ``names`` that mention Horovod, and of those that belong to them.

    ``others`` are the project's Python files, ``read`` gives a file's text, ``version`` is torch's. Files
    that import one another are converted together, or not at all. Nothing is raised for what the files hold.
    """
    result: dict[str, Converted] = {}
    for program in _programs(names, others, read, result):
        try:
            result.update(_converted(program, version))
        except Exception as error:
            result.update(_failed([name for name, file in program.files.items() if _imports(file)], error))
    return result


def _failed(names: Iterable[str], error: Exception) -> dict[str, Converted]:
    """Files stay as they are where a mistake of ours keeps them from being converted."""
    return {name: Converted("", failed=internal_error(name, error)) for name in names}


def _programs(
    names: Sequence[str], others: Iterable[str], read: Read, failed: dict[str, Converted]
) -> list[Program]:
    """The programs that use horovod.torch: files that import the same ones of ``names`` are one.

    ``failed`` gets the files that an internal error kept from being read.
    """
    imported = _Imports(read)
    if not any(map(imported.may_be_of_horovod, names)):
        return []
    imports = _import_of(names)
    entries = list(names)
    for one in others:
        if one not in names and imports.search(read(one) or "") and imported.has_one_of(one, names):
            entries.append(one)
    groups: list[tuple[list[str], set[str]]] = []
    for entry in entries:
        try:
            reached = imported.reached(entry)
        except UNREADABLE:
            continue  # the engine's turn meets it again, and reports it
        except Exception as error:
            failed.update(_failed([entry], error))
            continue
        mine = {
            name for name in reached if name in names and any(map(_is_horovod, imported.statements(name)))
        }
        if not mine:
            continue
        merged, apart = [entry], []
        for group, files in groups:
            if files & mine:
                merged = [*group, *merged]
                mine |= files
            else:
                apart.append((group, files))
        groups = [*apart, (merged, mine)]
    programs = []
    file_of = cache(read_file)  # programs have helpers in common
    for together, mine in groups:
        try:
            programs.append(load(together[0], read, more=together[1:], for_one_device=False, file_of=file_of))
        except Exception as error:
            failed.update(_failed(mine, error))
    return programs


def _import_of(names: Iterable[str]) -> re.Pattern[str]:
    """What an import of one of some files looks like: ``distributed``, not ``torch.distributed``."""
    stems: set[str] = set()
    inside: set[str] = set()
    for name in names:
        *folders, stem = name.removesuffix("/__init__.py").removesuffix(".py").split("/")
        stems.add(rf"(?<!\w\.){re.escape(stem)}")
        inside.update(re.escape(f"{folder}.{stem}") for folder in folders[-1:])
    modules = "|".join(sorted(stems | inside))
    return re.compile(rf"^[^\S\n]*(?:from|import)\b[^\n]*\b(?:{modules})\b", re.M)


class _Imports:
    """What files import. Each is parsed once, however many programs reach it."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.statements = cache(self._statements)
        self._files = cache(self._files_of)

    def _statements(self, name: str) -> list[Any]:
        """The import statements of a file, wherever they stand. Raises what of UNREADABLE it does."""
        below = statements_below(parse(self._read(name) or ""))
        return [node for node in below if isinstance(node, _IMPORTS)]

    def _files_of(self, name: str, folder: str) -> tuple[str, ...]:
        """The files that a file imports, in a program whose script lies in a folder."""
        script = posixpath.join(folder, "script.py")
        return tuple(imported_files(script, name, self.statements(name), self._read))

    def reached(self, entry: str) -> set[str]:
        """The files of a program, as ``load`` finds them. Raises what of UNREADABLE the entry does."""
        self.statements(entry)
        found: set[str] = set()
        waiting = [entry]
        while waiting:
            name = waiting.pop()
            if name not in found:
                with suppress(*UNREADABLE):
                    waiting += self._files(name, posixpath.dirname(entry))
                    found.add(name)
        return found

    def may_be_of_horovod(self, name: str) -> bool:
        """Whether a file imports horovod.torch, or cannot be read."""
        try:
            return any(map(_is_horovod, self.statements(name)))
        except Exception:
            return True  # it is told when the programs are read

    def has_one_of(self, name: str, wanted: Collection[str]) -> bool:
        """Whether a file imports one of some others."""
        try:
            return any(one in wanted for one in self._files(name, posixpath.dirname(name)))
        except Exception:
            return False  # the engine's turn meets it again, and reports it


def _imports(file: File) -> list[tuple[File, Any]]:
    """A file's imports of horovod.torch."""
    return [(file, statement) for statement in file.index.imports if _is_horovod(statement)]


def _is_horovod(statement: Any) -> bool:
    if isinstance(statement, ast.Import):
        names = [alias.name for alias in statement.names]
    else:
        module = "" if statement.level else statement.module or ""
        names = [module, *(f"{module}.{alias.name}" for alias in statement.names)]
    return any(name == PACKAGE or name.startswith(f"{PACKAGE}.") for name in names)


def _converted(program: Program, version: tuple[int, ...]) -> dict[str, Converted]:
    ours = [file for file in program.files.values() if _imports(file)]
    places = [place for file in ours for place in _imports(file)]
    plan = Plan(Draft(changed_code=_CHANGED, reported_code=_REPORTED), version)
    optional = [(file, node) for file, node in places if _is_optional(file, node)]
    own_way = any(_has_own_way(file) for file in program.files.values())
    if optional or own_way:
        for file, node in optional or places:
            plan.draft.report("beside_own_way" if own_way else "one_of_several_ways", file, node)
        return converted(program.files, plan.draft)
    if version < _OLDEST:
        plan.refuse("old_torch", ours[0], places[0][1])
    for file in ours:
        plan_names(file, plan, refuse_branches(file, plan))
        _check_names(file, plan)
    for file, call in plan.optimizers:
        try:
            plan_optimizer(program, file, call, plan)
        except UncertainError as error:
            plan.problems.append(error)
    if not plan.problems:
        plan_synchronize(program, plan)
    if not plan.problems:
        _leave_at_the_end(program, plan)
        for file in ours:
            text = helpers(plan.used.get(file.name, set()))
            if text:
                plan.use(file, text)
                plan.draft.of(file).header = text
            plan.draft.of(file).imports.sort(key=import_order)
        try:
            result = converted(program.files, plan.draft)
            _check_left(program, result)
            return result
        except (NotPlacedError, SyntaxError) as error:
            plan.problems.append(UncertainError("no_place", ours[0], error=error))
    return converted(program.files, _by_hand(ours, plan))


def _check_left(program: Program, result: Mapping[str, Converted]) -> None:
    """Raises NotPlacedError where a name of Horovod's would still be used."""
    for name, one in result.items():
        left = names_in(one.text) & _imported_names(program.files[name])
        if left:
            raise NotPlacedError(f"{', '.join(sorted(left))} is still used")


def _imported_names(file: File) -> set[str]:
    """The names that imports of Horovod bind in a file."""
    aliases = (alias for _, statement in _imports(file) for alias in statement.names)
    return {(alias.asname or alias.name).split(".")[0] for alias in aliases}


def _has_own_way(file: File) -> bool:
    """Whether a file uses torch.distributed to train on many devices."""
    names = {node.id for node in file.nodes(ast.Name)} | {node.attr for node in file.nodes(ast.Attribute)}
    names.update(alias.name for node in file.index.imports for alias in node.names)
    return not names.isdisjoint(_OWN_WAY)


def _is_optional(file: File, statement: ast.stmt) -> bool:
    """Whether an import of Horovod stands under a condition, or may fail."""
    around = (up for _, up in file.above(statement) if isinstance(up, (ast.Try, ast.If, ast.ExceptHandler)))
    return not all(map(is_main_guard, around))


def _check_names(file: File, plan: Plan) -> None:
    """The new code's names must mean in the file what they mean in the new code."""
    for scope in file.index.scopes:
        for name in (*_NAMES, *_NAMES_OF_HELPERS) if scope is file.index.module_scope else _NAMES:
            for binding in scope.bindings.get(name, ()):
                if binding.kind != "import" or binding.name.split(".")[0] not in ("torch", name):
                    plan.refuse("name_taken", file, binding.node, name=name)


def _leave_at_the_end(program: Program, plan: Plan) -> None:
    """Horovod leaves by itself when a program ends; torch.distributed wants to be told."""
    for file in program.files.values():
        called = {name for _, name in references(file)}
        tree = file.index.tree
        if "init" not in called or "shutdown" in called:
            continue
        guard: Any = next(filter(is_main_guard, tree.body), None)
        end = [*free_models(file, guard, plan.wrapped), "leave_distributed()"]
        changes = plan.draft.of(file)
        begun = [file.index.function_of(node) for node, name in references(file) if name == "init"]
        if guard is not None and not guard.orelse:
            changes.last.setdefault(guard, []).extend(end)
        elif guard is None and None in begun:
            changes.end.extend(end)
        else:
            continue
        plan.use(file, end[-1])


def _by_hand(ours: list[File], plan: Plan) -> Draft:
    """Nothing is changed; the findings hold the lines to write."""
    draft = Draft(changed_code=_CHANGED, reported_code=_REPORTED)
    for error in plan.problems:
        draft.refuse(error.file or ours[0], error, "not converted from Horovod: ")
    for file in ours:
        names = {name.split(".")[0] for _, name in references(file)}
        node = _imports(file)[0][1]
        for name in _STEPS:
            if name in names:
                draft.report(f"hvd.{name}", file, node)
    return draft
