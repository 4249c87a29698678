"""Programs on horovod.torch become programs on torch.distributed and DistributedDataParallel."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache

from migrator.convert.draft import UncertainError, names_in, new_imports
from migrator.convert.horovod.calls import PACKAGE, Plan, plan_names, references, refuse_branches
from migrator.convert.horovod.optimizer import plan_optimizer, plan_synchronize
from migrator.convert.models import free_models
from migrator.convert.program import UNREADABLE, Program, is_main_guard, load
from migrator.convert.write import NotPlacedError
from migrator.core.check import Converted
from migrator.findings.finding import internal_error
from migrator.names.tree import Import, bare_name, imported
from migrator.names.whole_file import WholeFile
from migrator.project.imports import Read, imported_files

_INSIDE = f"{PACKAGE}."
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

    ``failed`` gets the files that an internal error kept from being read. Each file is read once, however
    many programs reach it.
    """
    file_of = cache(WholeFile)

    @cache
    def imported_by(name: str, folder: str) -> tuple[str, ...]:
        """The files that a file imports, in a program whose script lies in a folder."""
        script, imports = posixpath.join(folder, "script.py"), file_of(name, read(name) or "").imports
        return tuple(imported_files(script, name, imports, read))

    def reached(entry: str) -> set[str]:
        """The files of a program, as ``load`` finds them. Raises what of UNREADABLE the entry does."""
        found, waiting = {entry}, [*imported_by(entry, posixpath.dirname(entry))]
        while waiting:
            name = waiting.pop()
            if name not in found:
                with suppress(*UNREADABLE):
                    waiting += imported_by(name, posixpath.dirname(entry))
                    found.add(name)
        return found

    if not any("torch" in (read(name) or "") for name in names):
        return []
    mentions = _import_of(names)
    groups: list[tuple[list[str], set[str]]] = []
    for entry in [*names, *(one for one in others if one not in names)]:
        uses = entry in names
        with suppress(Exception):  # the engine's turn meets it again, and reports it
            if not uses and mentions.search(read(entry) or ""):
                uses = not set(names).isdisjoint(imported_by(entry, posixpath.dirname(entry)))
        try:
            every = reached(entry) if uses else set()
            mine = {one for one in every if one in names and _imports(file_of(one, read(one) or ""))}
        except UNREADABLE:
            continue  # the engine's turn meets it, too
        except Exception as error:
            failed.update(_failed([entry], error))
            continue
        if mine:
            joined = [group for group in groups if group[1] & mine]
            entries = [one for group in reversed(joined) for one in group[0]]
            groups = [group for group in groups if group not in joined]
            groups.append(([*entries, entry], mine.union(*(group[1] for group in joined))))
    programs = []
    for together, mine in groups:
        try:
            program = load(together[0], read, more=together[1:], for_one_device=False, file_of=file_of)
            programs.append(program)
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


def _imports(file: WholeFile) -> list[Import]:
    """A file's imports of horovod.torch."""
    return [each for each in file.imports if any(f"{name}.".startswith(_INSIDE) for name in imported(each))]


def _converted(program: Program, version: tuple[int, ...]) -> dict[str, Converted]:
    ours = [file for file in program.files.values() if _imports(file)]
    places = [place for file in ours for place in _imports(file)]
    plan = Plan(program, version=version)
    around = {one: program.around(one, ast.Try, ast.If, ast.ExceptHandler) for one in places}
    optional = [one for one in places if not all(map(is_main_guard, around[one]))]
    names = {bare_name(node) for file in program.files.values() for node in file.every_node()}
    names |= {alias.name for file in program.files.values() for each in file.imports for alias in each.names}
    own_way = not names.isdisjoint(_OWN_WAY)  # it uses torch.distributed to train on many devices
    if optional or own_way:
        for statement in optional or places:
            plan.report("beside_own_way" if own_way else "one_of_several_ways", statement)
        return plan.converted()
    if version < _OLDEST:
        plan.refuse("old_torch", places[0])
    for file in ours:
        plan_names(file, plan, refuse_branches(file, plan))
        _check_names(file, plan)
    for call in plan.optimizers:
        try:
            plan_optimizer(call, plan)
        except UncertainError as error:
            plan.problems.append(error)
    if not plan.problems:
        plan_synchronize(plan)
    if not plan.problems:
        _leave_at_the_end(plan)
        for file in ours:
            plan.of(file.tree).imports.sort(key=list(new_imports().values()).index)
        try:
            result = plan.converted()
            _check_left(program, result)
            return result
        except (NotPlacedError, SyntaxError) as error:
            plan.problems.append(UncertainError("no_place", ours[0].tree, error=error))
    plan.give_up(plan.problems, ours[0].tree, "not converted from Horovod: ")
    for file in ours:  # the lines to write
        names = {name.split(".")[0] for _, name in references(program, file)}
        for name in (name for name in _STEPS if name in names):
            plan.report(f"hvd.{name}", _imports(file)[0])
    return plan.converted()


def _check_left(program: Program, result: Mapping[str, Converted]) -> None:
    """Raises NotPlacedError where a name of Horovod's would still be used."""
    for name, one in result.items():
        aliases = (alias for statement in _imports(program.files[name]) for alias in statement.names)
        left = names_in(one.text) & {(alias.asname or alias.name).split(".")[0] for alias in aliases}
        if left:
            raise NotPlacedError(f"{', '.join(sorted(left))} is still used")


def _check_names(file: WholeFile, plan: Plan) -> None:
    """The new code's names must mean in the file what they mean in the new code."""
    for scope in file.scopes:
        for name in (*_NAMES, *_NAMES_OF_HELPERS) if scope is file.module_scope else _NAMES:
            for binding in scope.bindings.get(name, ()):
                if binding.kind != "import" or binding.name.split(".")[0] not in ("torch", name):
                    plan.refuse("name_taken", binding.node, name=name)


def _leave_at_the_end(plan: Plan) -> None:
    """Horovod leaves by itself when a program ends; torch.distributed wants to be told."""
    for file in plan.program.files.values():
        called = {name for _, name in references(plan.program, file)}
        if "init" not in called or "shutdown" in called:
            continue
        guard = next(filter(is_main_guard, file.tree.body), None)
        end = [*free_models(plan.program, guard or file.tree, plan.wrapped), "leave_distributed()"]
        begun = [file.owner_of(node) for node, name in references(plan.program, file) if name == "init"]
        if isinstance(guard, ast.If) and not guard.orelse:
            plan.insert("last", guard, end)
        elif guard is None and file.tree in begun:
            plan.of(file.tree).end.extend(end)
            plan.use(file.tree, end[-1])
