"""CUDA operators as Python sees them: where they are built, loaded and called; kernels in Python."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import Optional

from migrator.language import N_, _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule
from migrator.matchers.structural.operator_forms import forms
from migrator.names.conditions import knows_npus
from migrator.names.tree import Import, bare_name, called_name, holder_of, string_value
from migrator.project.module_names import absolute_name
from migrator.project.operators import Module, Operator

_IF_CUDA = N_("If it builds CUDA sources, replace the operators, or write them as Ascend C operators.")
_LOADS = ("load", "import", "get_ext")


def find_builds(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Where an extension is built from CUDA sources; one of C++ sources that touch no CUDA is none."""
    operators = context.project.operators
    for ref, name in _exactly(context, rule):
        call, is_cpp = context.index.call_of(ref), name.endswith(".CppExtension")
        if call is None:
            if not is_cpp and not _has_alias(context, ref):
                yield found(context, rule, ref, api=name)
            continue
        extension = operators.extensions.get((context.name, call.lineno))
        built = f": {extension.name}" if extension is not None and extension.name else ""
        message = _("{name} builds a CUDA operator{built}", name=name, built=built)
        severity = advice = ""
        if is_cpp and not (extension and extension.cuda):
            continue
        if extension is not None and not extension.cuda and extension.names_no_sources:
            message = _("{name} builds unnamed sources; no C++ file of this project uses CUDA", name=name)
            advice, severity = _(_IF_CUDA), "info"
        if extension is not None and not extension.cuda and extension.complete:
            if extension.name not in operators.modules:
                continue
        if not advice and name.endswith(".load") and not (extension and extension.sources):
            message = _(
                "{name} builds operators; their sources are not found here and may be CUDA", name=name
            )
            severity = "warning"
        yield found(context, rule, ref, api=name, message=message, advice=advice, severity=severity)


def _exactly(context: FileContext, rule: Rule) -> Iterator[tuple[ast.expr, str]]:
    """Where a name of the rule is read, and nothing of it."""
    for ref in context.index.refs:
        name = context.index.qualified_name(ref)
        if name and rule.fits(name) and isinstance(getattr(ref, "ctx", None), ast.Load):
            yield ref, name


def _has_alias(context: FileContext, ref: ast.expr) -> bool:
    """Whether what builds only gets another name, by which it is called: ``extension = CUDAExtension``."""
    holder = context.index.parent(ref)
    target = holder.targets[0] if isinstance(holder, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return False
    called = (call.func for call in context.index.calls if bare_name(call.func) == target.id)
    return any(isinstance(use, ast.Name) and len(context.index.bindings(use)) == 1 for use in called)


def find_uses(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Imports of extension modules with CUDA operators, and uses of these operators."""
    users = Users(context)
    replaced = forms(context)  # of these NPU637 speaks
    yield from _builders(context, rule)
    for node in context.index.imports:
        names = users.imported(node) if not any(node is form.node for form in replaced) else ()
        for built in (each for name in names if (each := users.module(name))):
            message = _("{api} is an extension built from CUDA sources", api=_importable(built.name))
            yield _used(context, rule, node, built.name, message, built.npu)
    for ref in context.index.refs:
        meant = users.operator(ref)
        if meant is not None and not any(form.owner in context.index.above(ref) for form in replaced):
            api, operator, module = meant
            place = f" ({operator.file}:{operator.line})" if operator else ""
            owner = context.index.class_of(ref)
            inside = _(", used in {name}", name=owner.name) if owner is not None else ""
            about = {"api": _importable(api), "place": place, "inside": inside}
            message = _("{api} is a CUDA operator{place}{inside}", **about)
            npu = bool(operator and operator.npu) or bool(module and module.npu)
            yield _used(context, rule, ref, api, message, npu)


def _used(context: FileContext, rule: Rule, node: ast.AST, api: str, message: str, npu: bool) -> Match:
    advice = _("An implementation for NPUs is among the sources: build the extension with it.") if npu else ""
    severity = "info" if npu else ""
    return found(context, rule, node, api=_importable(api), message=message, advice=advice, severity=severity)


def _importable(api: str) -> str:
    """A name behind the folders that can be no packages, such as those of an sdist."""
    parts = api.split(".")
    outside = max((place for place, part in enumerate(parts) if not part.isidentifier()), default=-1)
    return ".".join(parts[outside + 1 :]) or api


def _builders(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Classes that compile CUDA sources when their ``load()`` is called, and these calls."""
    index, operators = context.index, context.project.operators
    for owner in index.classes:
        if owner.name in operators.builders and operators.builders[owner.name].file == context.name:
            start = index.start(owner)
            span = (start, start + len("class ") + len(owner.name))
            yield _building(context, rule, owner, operators.builders[owner.name], span)
    for call in index.calls:
        holder, called = holder_of(call), called_name(call)
        name = called_name(holder) if called == "load" else ""
        if name in operators.builders:
            yield _building(context, rule, call, operators.builders[name], None)
        built = operators.extensions.get((context.name, call.lineno))
        by_helper = any(keyword.arg == "sources" for keyword in call.keywords)
        if built is not None and by_helper and built.kind == "load" and built.cuda and built.sources:
            if not index.qualified_name(call.func).startswith("torch."):  # of which a rule of its own speaks
                message = _("{call} builds a CUDA operator: {name}", call=called, name=built.name)
                yield found(context, rule, call, api=called, message=message)


def _building(
    context: FileContext, rule: Rule, node: ast.AST, module: Module, span: tuple[int, int] | None
) -> Match:
    message = _("{name} compiles CUDA sources when loaded", name=module.name)
    advice, severity = "", "error" if isinstance(node, ast.ClassDef) else ""
    if module.npu:
        advice = _("A builder for NPUs has the same name: make sure that it is the one that is loaded.")
        severity = "info"
    about = partial(found, message=message, advice=advice, severity=severity)
    return about(context, rule, node, api=module.name, span=span)


_Meant = Optional[tuple[str, Optional[Operator], Optional[Module]]]  # an operator, with its name and module


class Users:
    """Finds out which extension module or operator a name of one file stands for."""

    def __init__(self, context: FileContext) -> None:
        self.context = context
        self.operators = context.project.operators
        self.by_short: dict[str, Module] = {}
        for name, module in self.operators.modules.items():
            self.by_short.setdefault(name.rpartition(".")[2], module)

    def imported(self, node: Import) -> Iterator[str]:
        """What an import statement imports, by full names."""
        for alias in node.names:
            if isinstance(node, ast.Import):
                yield alias.name
            else:
                module = "." * node.level + (node.module or "")
                yield self._absolute(f"{module}.{alias.name}" if node.module else module + alias.name)
                if alias.name == "*" or node.module:
                    yield self._absolute(module)

    def module(self, name: str) -> Module | None:
        """The extension module of a full name; also where the project's folder is not its package's."""
        known = self.operators.modules.get(name)
        if known is not None:
            return known
        candidate = self.by_short.get(name.rpartition(".")[2])
        if candidate is None:
            return None
        long, short = sorted((name, candidate.name), key=len, reverse=True)
        return candidate if (long.endswith("." + short) and "." in short) or name == short else None

    def operator(self, ref: ast.expr) -> _Meant:
        """The operator that a dotted name stands for, with its name."""
        if not isinstance(getattr(ref, "ctx", None), ast.Load):
            return None
        name = self.context.index.qualified_name(ref)
        if name.startswith("torch.ops."):
            known = self.operators.torch_ops.get(".".join(name.split(".")[2:4]))
            return (name, known, None) if known else None
        module: Optional[Module] = None
        if name:
            name = self._absolute(name)
            module = self.module(name.rpartition(".")[0]) if "." in name else None
        elif isinstance(ref, ast.Attribute):
            module = self._held(ref.value)
            name = f"{module.name}.{ref.attr}" if module else ""
        if module is None:
            return None
        if module.operators is None:
            return (name, None, module) if self.context.index.call_of(ref) else None
        operator = module.operators.get(name.rpartition(".")[2])
        return (name, operator, module) if operator else None

    def _held(self, node: ast.expr) -> Module | None:
        """The module that an expression holds: the result of a loader."""
        index = self.context.index
        if isinstance(node, ast.Name):
            values = index.assigned(node)
            known = next(filter(None, map(self._loaded, values)), None)
            return known or (self.operators.variables.get((self.context.name, node.id)) if values else None)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("self", "cls"):
            return self.operators.variables.get((self.context.name, node.attr))
        return self._loaded(node)

    def _loaded(self, value: ast.expr) -> Module | None:
        """The module that ``load_ext("_ext", …)`` or ``FusedAdamBuilder().load()`` gives."""
        if not isinstance(value, ast.Call):
            return None
        maker = holder_of(value)
        if isinstance(maker, ast.Call) and called_name(value) in ("load", "jit_load"):
            return self.operators.builders.get(called_name(maker))
        if not any(word in called_name(value) for word in _LOADS):
            return None
        texts = filter(None, map(string_value, value.args[:2]))
        known = (self.module(text) or self.by_short.get(text) for text in texts)
        return next(filter(None, known), None)

    def _absolute(self, name: str) -> str:
        return absolute_name(name, self.context.name)


def find_kernels(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Functions that a decorator compiles as a kernel."""
    for function in context.index.functions:
        if function.decorator_list:
            context.index.expand(function)
        for decorator in function.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if context.index.parent(called) is None:
                continue  # not walked: no word from which a rule starts is on its lines
            # Another module than the library may have imported it from there.
            qualified = f".{context.index.qualified_name(called)}"
            name = next((known for known in rule.match if qualified.endswith(f".{known}")), "")
            if name:
                message = _("{name} is a {name2} kernel", name=function.name, name2=name)
                severity = ""
                if knows_npus(f"{context.name} {function.name}"):
                    message = _("{message}, made for NPUs by its name or its file's", message=message)
                    severity = "info"
                yield found(context, rule, called, api=function.name, message=message, severity=severity)
