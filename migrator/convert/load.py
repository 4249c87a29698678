"""Reading a program: from the script that is started on, along the imports."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from migrator.convert.program import Defined, File, Program, read_file
from migrator.convert.values import definition_of
from migrator.names.tree import FUNCTIONS, called_name
from migrator.project.definitions import Definitions
from migrator.project.distributed_use import is_distributed
from migrator.project.imports import Read, imported_names, place_of_import

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_OTHERS = {
    *("torch", "torchvision", "torchaudio", "numpy", "scipy", "PIL"),
    *getattr(sys, "stdlib_module_names", ()),
}


class AlreadyDistributedError(Exception):
    """A program that is for many devices."""


def load(
    entry: str,
    read: Read,
    elsewhere: Definitions | None = None,
    more: Sequence[str] = (),
    for_one_device: bool = True,
    file_of: Callable[[str, str], File] = read_file,
) -> Program:
    """The program of the file ``entry``; ``read`` gives the text of a file, None where there is none.

    ``elsewhere`` is asked where the names say too little, ``more`` are other files that are started;
    ``file_of`` may give a file that another program has, too. Raises what of UNREADABLE the entry does (other
    such files are left out), AlreadyDistributedError where it has to be ``for_one_device``.
    """
    files: dict[str, File] = {}
    parents: dict[ast.AST, ast.AST] = {}
    waiting = [entry, *more]
    while waiting:
        name = waiting.pop(0)
        text = read(name)
        if name in files or text is None:
            continue
        if for_one_device and is_distributed(text):
            raise AlreadyDistributedError
        try:
            read_once = file_of(name, text)
            parents.update(read_once.parents)
            # What imports mean depends on what is started.
            file = files[name] = replace(read_once, imports={}, parents=parents)
        except UNREADABLE:
            if name == entry:
                raise
            continue
        started = name if name in more else entry
        for node, bound, module, attribute in imported_names(file.nodes(ast.Import, ast.ImportFrom)):
            found = place_of_import(name, started, module, attribute, read)
            if found is None and elsewhere and module.partition(".")[0] not in _OTHERS:
                places = elsewhere.places(name, file.index, node)
                found = (places[0][0], attribute if places[0][1] else "") if len(places) == 1 else None
            if found:
                waiting.append(found[0])
                if bound != "*":
                    file.imports[bound] = found
    program = Program(files[entry], files, elsewhere=elsewhere)
    _put_families(program)
    names = {node.name for _, node in program.nodes(*FUNCTIONS, ast.ClassDef)}
    for file, call in program.nodes(ast.Call):
        definition = definition_of(program, file, call)
        if definition is None and elsewhere and called_name(call) in names:
            definition = program.found[id(call)] = _looked_up(program, elsewhere, file, call)
        if definition:
            program.calls.setdefault(id(definition[1]), []).append((file, call))
    return program


def _put_families(program: Program) -> None:
    """Note for each class its bases, the nearest first, and then what inherits from it."""
    classes = program.nodes(ast.ClassDef)
    bases: dict[int, list[tuple[File, ast.ClassDef]]] = {}
    for file, owner in classes:
        known = bases[id(owner)] = []
        waiting = [(file, owner)]
        while waiting:
            where, one = waiting.pop(0)
            for base in one.bases:
                found = definition_of(program, where, ast.Call(base, [], []))
                if found and isinstance(found[1], ast.ClassDef):
                    if found[1] is not owner and all(found[1] is not each for _, each in known):
                        known.append((found[0], found[1]))
                        waiting.append((found[0], found[1]))
    program.families.update({key: list(known) for key, known in bases.items()})
    for file, owner in classes:
        for _, base in bases[id(owner)]:
            program.families[id(base)].append((file, owner))


def _looked_up(program: Program, elsewhere: Definitions, file: File, call: ast.Call) -> Defined | None:
    """What ``elsewhere`` says that a call calls."""
    found = [
        (program.files[name], node)
        for name, line, _ in elsewhere.places(file.name, file.index, call)
        if name in program.files
        for node in program.files[name].nodes(*FUNCTIONS, ast.ClassDef)
        if node.lineno == line
    ]
    return found[0] if len(found) == 1 else None
