"""A CUDA operator whose file has the same in torch's operators: ``apply`` of its function calls that."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import Import, defaults, parameters

# What authors call the reference that they test an operator with: ms_deform_attn_core_pytorch.
_FORM = re.compile(r"_(?:pytorch|torch|python|py|ref|reference|naive)$")


class Form(NamedTuple):
    """The import of an extension module, an autograd function on it, and the function that does the same."""

    node: Import
    bound: str
    owner: ast.ClassDef
    forward: ast.FunctionDef
    function: ast.FunctionDef


def find(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Autograd functions on a CUDA operator; those of an import have their fixes together with it."""
    index = context.index
    replaced: set[ast.AST] = set()
    for form in forms(context):
        edits = [_apply(index, form)]
        # Whether the program goes on without the module: ``except ImportError`` that raises nothing.
        tried = index.parent(form.node)
        handlers = tried.handlers if isinstance(tried, ast.Try) and form.node in tried.body else ()
        raises = any(isinstance(each, ast.Raise) for handler in handlers for each in ast.walk(handler))
        if form.node not in replaced and (raises or not handlers):
            replaced.add(form.node)
            edits.append(instead_of(index, form.node, f"{form.bound} = None"))
        message = rule.message.replace("{function}", form.function.name)
        start = index.start(form.owner)
        span = (start, start + len(f"class {form.owner.name}"))
        yield found(context, rule, form.owner, api=form.owner.name, edits=edits, message=message, span=span)


def forms(context: FileContext) -> list[Form]:
    """The autograd functions of a file for which another function of it can stand."""
    return context.index.once(("operator forms",), lambda: list(_forms(context)))


def _forms(context: FileContext) -> Iterator[Form]:
    from migrator.matchers.structural.cuda_operators import Users

    index = context.index
    functions = [
        each for each in index.tree.body if isinstance(each, ast.FunctionDef) and _FORM.search(each.name)
    ]
    if not functions:
        return
    users = Users(context)
    for node in index.imports:
        bound = node.names[0].asname or node.names[0].name
        if len(node.names) > 1 or "." in bound or index.function_of(node) is not None:
            continue
        modules = [users.module(name) for name in users.imported(node)]
        if any(module is not None and not module.npu for module in modules):  # it has CUDA operators
            made = [_form(index, node, bound, owner, functions) for owner in index.classes]
            complete = [form for form in made if form is not None]
            inside = {each for form in complete for each in ast.walk(form.owner)}
            if all(use in inside for use in _uses(index.tree, bound)):
                yield from complete


def _form(
    index: ModuleIndex, node: Import, bound: str, owner: ast.ClassDef, functions: list[ast.FunctionDef]
) -> Form | None:
    """What stands for a class, if just one function takes nothing but what its ``forward`` gets."""
    is_function = any(index.qualified_name(base).endswith("autograd.Function") for base in owner.bases)
    methods = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)}
    forward = methods.get("forward")
    if not is_function or forward is None or "apply" in methods or not forward.decorator_list:
        return None
    given = {each.arg for each in parameters(forward.args)[1:]}
    if forward.args.vararg or forward.args.kwarg or not any(_uses(forward, bound)):
        return None
    fitting = [each for each in functions if {p.arg for p in parameters(each.args)} <= given]
    return Form(node, bound, owner, forward, fitting[0]) if len(fitting) == 1 else None


def _uses(around: ast.AST, name: str) -> Iterator[ast.Name]:
    return (each for each in ast.walk(around) if isinstance(each, ast.Name) and each.id == name)


def _apply(index: ModuleIndex, form: Form) -> Edit:
    """The edit that gives the class an ``apply`` of its own, above ``forward``."""
    first = form.forward.decorator_list[0]
    start = index.lines.starts[first.lineno - 1]
    indent = " " * form.forward.col_offset
    newline = newline_of(index.text)
    usual = {each.arg: index.segment(value) for each, value in defaults(form.forward.args) if value}
    taken = [each.arg for each in parameters(form.forward.args)[1:]]
    given = ", ".join(f"{each.arg}={each.arg}" for each in parameters(form.function.args))
    names = [f"{name}={usual[name]}" if name in usual else name for name in taken]
    lines = (
        "@staticmethod",
        f"def apply({', '.join(names)}):",
        f"    return {form.function.name}({given})",
        "",
    )
    return Edit(start, start, "".join(f"{indent}{line}{newline}" if line else newline for line in lines))
