"""CUDA operators as Python sees them: where they are built, loaded and called, and what leads to them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import field
from functools import partial
from typing import Optional

from migrator.api_support.libraries import KnownOperator, equivalents_of, known_operator
from migrator.files.naming import EQUIVALENTS
from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.light import NamedTuple
from migrator.matchers.argument_edits import without_statement
from migrator.matchers.context import FileContext, Match, Said, found, insertion, instead_of
from migrator.matchers.npu_import import import_at_top, torch_module
from migrator.matchers.options import EXPRESSION, NEVER
from migrator.matchers.packs import Options, Rule, pattern_fits
from migrator.matchers.structural.api_verdicts import home_of_ours, parameters_of
from migrator.names.conditions import (
    IMPORT_ERRORS,
    Choice,
    avoids_operators,
    catching,
    choices,
    decided,
    guards_cuda_build,
    has_npu_branch,
    is_caught,
    knows_npus,
    operator_uses,
)
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import (
    FUNCTIONS,
    Import,
    String,
    bare_name,
    called_name,
    defaults,
    holder_of,
    imported,
    is_cpu,
    is_off,
    last_name,
    only_target,
    parameters,
    root,
    string_value,
    walk,
)
from migrator.names.what_is import options_like
from migrator.project.module_names import absolute_name
from migrator.project.operators import Module, Operator

_IF_CUDA = N_("If it builds CUDA sources, replace the operators, or write them in Ascend C.")
_LOADS = ("load", "import", "get_ext")


def find_builds(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Where an extension is built from CUDA sources; one of C++ sources that touch no CUDA is none."""
    index, operators = context.index, context.project.operators
    for ref, name in context.uses_of(rule):
        call, is_cpp = index.call_of(ref), name.endswith(".CppExtension")
        if call is None:
            # It may only get another name, by which it is called: ``extension = CUDAExtension``.
            alias = bare_name(only_target(index.parent(ref)))
            called = (call.func for call in index.calls if alias and bare_name(call.func) == alias)
            has_alias = any(isinstance(use, ast.Name) and len(index.bindings(use)) == 1 for use in called)
            if not is_cpp and not has_alias:
                holder = index.parent(ref)
                holder = index.parent(holder) if isinstance(holder, ast.Tuple) else holder
                severity = "info" if isinstance(holder, ast.Return) else ""  # nothing is built here
                yield found(context, rule, ref, api=name, severity=severity)
            continue
        extension = operators.extensions.get((context.name, call.lineno))
        is_cuda = extension is not None and extension.cuda
        built = f": {extension.name}" if extension is not None and extension.name else ""
        message = _("{name} builds a CUDA operator{built}", name=name, built=built)
        severity = advice = ""
        if is_cpp and not is_cuda:
            continue
        if extension is not None and not is_cuda and extension.names_no_sources:
            said = N_("{name} builds sources whose names are computed; no C++ file of this project uses CUDA")
            message = _(said, name=name)
            advice, severity = _(_IF_CUDA), "info"
        if extension is not None and not is_cuda and extension.complete:
            if extension.name not in operators.modules:
                continue
        if not advice and name.endswith(".load") and not (extension and extension.sources):
            severity = "warning"
            text = N_("{name} builds operators from sources outside the project, which may be CUDA")
            message = _(text, name=name)
        edits = _guarded(context, rule, call) if is_cuda and name.endswith("cpp_extension.load") else []
        says = partial(found, message=message, advice=advice, severity=severity)
        yield says(context, rule, ref, api=name, edits=edits, needs_npu=False)


def _guarded(context: FileContext, rule: Rule, build: ast.Call) -> list[Edit]:
    """The edit that builds operators at import with CUDA only; none where an NPU has no other way."""
    index, torch = context.index, torch_module(context.index, build)
    holder = index.parent(build)
    if torch is None or not isinstance(holder, ast.Assign) or holder not in index.tree.body:
        return []
    names = {bare_name(target) for target in holder.targets}
    every = (item.node for item in _uses(context, rule))
    uses = [node for node in every if isinstance(node, ast.expr) and bare_name(root(node)) in names]
    plain = {form.owner for form in forms(context)}  # those do without, and what has functions of ours
    asked = (use for name in names - replaced(context).keys() for use in index.uses(name, index.module_scope))
    others = (use for use in asked if plain.isdisjoint(index.above(use)))
    if not _avoided(index, uses) if uses else any(others):
        return []
    end = index.end(build)
    return [Edit(end, end, f" if {torch}.version.cuda else None")]


def _avoided(index: ModuleIndex, uses: Collection[ast.AST]) -> bool:
    """Whether a question for CUDA, or for all but the CPU, keeps an NPU from some uses of operators."""
    operators = operator_uses(index, uses)
    asked = [choices(index, question) for question in _questions(index)]
    asked += [_ways_of_the_cpu(index, node) for node in filter(is_cpu, index.strings)]
    return any(avoids_operators(found, operators) for found in asked)


def replaced(context: FileContext) -> dict[str, dict[ast.expr, str]]:
    """The names of a file whose uses are all CUDA operators with bundled functions.

    There are none in lint, where no result gets these functions, and where the file has a way of its own.
    """
    return context.index.once(("replaced operators",), lambda: _replaced(context))


def _replaced(context: FileContext) -> dict[str, dict[ast.expr, str]]:
    index, users, scope = context.index, Users(context), context.index.module_scope
    every: dict[str, dict[ast.expr, str]] = {}
    for ref in index.refs if home_of_ours(context)[1] else ():
        if function := _function_of_ours(users, ref):
            every.setdefault(bare_name(root(ref)), {})[ref] = function
    found = {}
    for name, functions in every.items():
        alone = all(len(getattr(each.node, "names", [each])) == 1 for each in scope.bindings.get(name, ()))
        if alone and {*map(root, functions)} == {*index.uses(name, scope)} and not _avoided(index, functions):
            found[name] = functions
    return found


def _function_of_ours(users: Users, ref: ast.expr) -> str:
    """The bundled function with the parameters of the operator's source; empty for none.

    What an extension binds for the CPU beside its operators has as many as a call gives.
    """
    meant, bound, call = users.operator(ref), users.bound(ref), users.context.index.call_of(ref)
    if meant is None and bound is not None and bound[0].endswith("_cpu") and call and not call.keywords:
        count = len(call.args)
        return _bundled((bound[0], None, bound[1]), lambda names: len(names) == count)
    if meant is None or meant[1] is None or meant[1].npu:
        return ""
    theirs = tuple(each.removesuffix("_tensor") for each in meant[1].parameters)
    return _bundled(meant, theirs.__eq__)


def _bundled(
    meant: tuple[str, Operator | None, Module | None], fits: Callable[[tuple[str, ...]], bool]
) -> str:
    known, name = _known(meant), meant[0].rpartition(".")[2]
    for pair in known["bundled"].split() if known else ():
        theirs, _colon, own = pair.partition(":")
        if theirs == name and any(map(fits, parameters_of(own or theirs)[1:])):
            return own or theirs
    return ""


def _known(meant: tuple[str, Operator | None, Module | None]) -> KnownOperator | None:
    """What an operator is by its name, its module and its file."""
    api, operator, module = meant
    place = f"{module.name if module else ''} {operator.file if operator else ''}"
    return known_operator(api.rpartition(".")[2], place)


def find_replaced(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Uses of CUDA operators that become calls of our functions, with the imports that go."""
    index, (statement, home), every = context.index, home_of_ours(context), replaced(context)
    firsts = [min(functions, key=index.start) for functions in every.values()]
    for first, (name, functions) in zip(firsts, every.items()):
        edits = [instead_of(index, ref, f"{home}.{own}") for ref, own in functions.items()]
        bound = (each.node for each in index.module_scope.bindings[name] if each.kind == "import")
        edits += (without_statement(index, node) for node in bound if isinstance(node, ast.stmt))
        message = rule.message.replace("{functions}", ", ".join(dict.fromkeys(functions.values())))
        yield found(context, rule, first, api=name, edits=edits, message=message)
    changes = any(not has_npu_branch(index, first) for first in firsts)
    place = import_at_top(index, statement) if changes else None
    if place is not None:
        yield insertion(context, rule, *place, EQUIVALENTS, _("the functions called below"))


def find_uses(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Imports of extension modules with CUDA operators, and uses of these operators."""
    yield from _builders(context, rule)
    yield from _uses(context, rule)


def _uses(context: FileContext, rule: Rule) -> Iterator[Match]:
    users = Users(context)
    in_place = forms(context)  # of these NPU637 speaks
    moved, bindings = replaced(context), context.index.module_scope.bindings  # and of these NPU663
    gone = {*(form.node for form in in_place), *(each.node for name in moved for each in bindings[name])}
    for node in context.index.imports:
        names = users.imported(node) if node not in gone else ()
        for built in (each for name in names if (each := users.module(name)) and each.operators != {}):
            message = _("{api} is an extension built from CUDA sources", api=_importable(built.name))
            yield _used(context, rule, node, built.name, message, built.npu)
    in_forms = {form.owner for form in in_place}
    for ref in context.index.refs:
        meant = users.operator(ref)
        is_moved = bare_name(root(ref)) in moved
        if meant is not None and not is_moved and in_forms.isdisjoint(context.index.above(ref)):
            api, operator, module = meant
            place = f" ({operator.file}:{operator.line})" if operator else ""
            owner = context.index.class_of(ref)
            inside = _(", used in {name}", name=owner.name) if owner is not None else ""
            about = {"api": _importable(api), "place": place, "inside": inside}
            message = _("{api} is a CUDA operator{place}{inside}", **about)
            npu = any(each.npu for each in (operator, module) if each)
            ours = "" if home_of_ours(context)[1] else _function_of_ours(users, ref)
            said = N_("A migration adds ascend_function.{name}, made of torch operators.")
            advice = _(said, name=ours) if ours else equivalents_of(_known(meant))
            yield _used(context, rule, ref, api, message, npu, advice)


def _used(
    context: FileContext, rule: Rule, node: ast.AST, api: str, message: str, npu: bool, advice: str = ""
) -> Match:
    own = N_("The sources include an implementation for NPUs: build the extension with it.")
    advice = _(own) if npu else advice
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
        builder, start = operators.builders.get(owner.name), index.start(owner)
        if builder is not None and builder.file == context.name:
            span = (start, start + len(f"class {owner.name}"))
            yield _building(context, rule, owner, builder, span)
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
        advice = _("A builder for NPUs has the same name: make sure that the program loads that one.")
        severity = "info"
    about: Said = {"api": module.name, "message": message, "advice": advice, "severity": severity}
    return found(context, rule, node, span=span, **about)


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
        file = self.context.name
        for alias in node.names:
            if isinstance(node, ast.Import):
                yield alias.name
            else:
                module = "." * node.level + (node.module or "")
                yield absolute_name(f"{module}.{alias.name}" if node.module else module + alias.name, file)
                if alias.name == "*" or node.module:
                    yield absolute_name(module, file)

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

    def modules(self) -> Iterator[tuple[Import | None, str, list[Module | None]]]:
        """The names that imports, or builds, at the file's top bind, with the import and the modules."""
        for node in self.context.index.imports:
            bound = node.names[0].asname or node.names[0].name
            if len(node.names) == 1 and "." not in bound and self.context.index.function_of(node) is None:
                yield node, bound, [self.module(name) for name in self.imported(node)]
        for bound in filter(None, (bare_name(only_target(each)) for each in self.context.index.tree.body)):
            yield None, bound, [self.operators.variables.get((self.context.name, bound))]

    def operator(self, ref: ast.expr) -> _Meant:
        """The operator that a dotted name stands for, with its name."""
        if not isinstance(getattr(ref, "ctx", None), ast.Load):
            return None
        name = self.context.index.qualified_name(ref)
        if name.startswith("torch.ops."):
            known = self.operators.torch_ops.get(".".join(name.split(".")[2:4]))
            return (name, known, None) if known else None
        bound = self.bound(ref)
        if bound is None:
            return None
        name, module = bound
        if module.operators is None:
            return (name, None, module) if self.context.index.call_of(ref) else None
        last = name.rpartition(".")[2]
        operator = module.operators.get(last)
        return (name, operator, module) if operator or "cuda" in last.lower() else None

    def bound(self, ref: ast.expr) -> tuple[str, Module] | None:
        """What a dotted name of an extension module is in full, and the module."""
        name = self.context.index.qualified_name(ref)
        module: Optional[Module] = None
        if name:
            name = absolute_name(name, self.context.name)
            module = self.module(name.rpartition(".")[0]) if "." in name else None
        elif isinstance(ref, ast.Attribute):
            module = self._held(ref.value)
            name = f"{module.name}.{ref.attr}" if module else ""
        return (name, module) if module is not None else None

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


class KernelOptions(Options):
    """``cannot``: names that the compiler for NPUs does not compile; ``changes``: those to be changed."""

    cannot: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


def _verdict(context: FileContext, options: KernelOptions, function: ast.AST, message: str) -> str:
    """The message for a kernel, by what its body means for the compiler for NPUs."""
    parts = (each for each in walk(function) if isinstance(each, (ast.Attribute, ast.Name)))
    named = {context.index.qualified_name(each): each for each in parts}
    for patterns, said in (
        (options.cannot, N_("{message}, which triton-ascend does not compile: it uses {names}")),
        (options.changes, N_("{message}, which needs changes for triton-ascend: it uses {names}")),
    ):
        fitting = (node for name, node in named.items() if any(pattern_fits(each, name) for each in patterns))
        found_in = set(map(ast.unparse, fitting))
        names = (each for each in sorted(found_in) if not any(one.startswith(f"{each}.") for one in found_in))
        if found_in:
            return _(said, message=message, names=", ".join(names))
    compiles = N_("{message}; nothing in it is known to need a change for triton-ascend")
    return _(compiles, message=message) if options.cannot else message


def find_kernels(context: FileContext, rule: Rule[KernelOptions]) -> Iterator[Match]:
    """Functions that a decorator compiles as a kernel, or a call: ``kernel = triton.jit(kernel)``."""
    index = context.index
    own = {each.name: each for each in index.functions}
    for function in index.functions:
        if function.decorator_list:
            index.expand(function)
    compiled = [(one, getattr(each, "func", each)) for one in index.functions for each in one.decorator_list]
    given = [(own.get(bare_name(call.args[0])), call.func) for call in index.calls if call.args]
    compiled += [(function, called) for function, called in given if function is not None]
    for function, called in compiled:
        if index.parent(called) is None:
            continue  # not walked: no word from which a rule starts is on its lines
        # Another module than the library may have imported it from there.
        qualified = f".{index.qualified_name(called)}"
        name = next((known for known in rule.match if qualified.endswith(f".{known}")), "")
        if name:
            message = _("{name} is a {name2} kernel", name=function.name, name2=name)
            message = _verdict(context, rule.options, function, message)
            severity = ""
            if knows_npus(f"{context.name} {function.name}"):
                message = _("{message}; its name, or that of its file, refers to NPUs", message=message)
                severity = "info"
            yield found(context, rule, called, api=function.name, message=message, severity=severity)


# What authors call the reference that they test an operator with: ms_deform_attn_core_pytorch.
_FORMS = ("_pytorch", "_torch", "_python", "_py", "_ref", "_reference", "_naive")


class Form(NamedTuple):
    """The import of an extension module, an autograd function on it, and the function that does the same.

    There is no import of one that the file builds, which NPU651 leaves out.
    """

    node: Import | None
    bound: str
    owner: ast.ClassDef
    forward: ast.FunctionDef
    function: ast.FunctionDef


def find_forms(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Autograd functions on a CUDA operator; those of an import have their fixes together with it."""
    index = context.index
    replaced: set[ast.AST] = set()
    for form in forms(context):
        edits = [_apply(index, form)]
        node = form.node
        if node and node not in replaced and catching(index, node, IMPORT_ERRORS) is None:
            replaced.add(node)
            edits.append(instead_of(index, node, f"{form.bound} = None"))
            edits += (instead_of(index, asked, '"99"') for asked in _asked_versions(index, node))
        message = rule.message.replace("{function}", form.function.name)
        start = index.start(form.owner)
        span = (start, start + len(f"class {form.owner.name}"))
        yield found(context, rule, form.owner, api=form.owner.name, edits=edits, message=message, span=span)


def _asked_versions(index: ModuleIndex, node: Import) -> Iterator[ast.expr]:
    """Where a file asks for the version of what it imports: nobody builds that, so there is none."""
    for call in ast.walk(index.tree):
        if isinstance(call, ast.Call) and called_name(call) in ("get_distribution", "version"):
            if call.args and string_value(call.args[0]) == node.names[0].name:
                around = index.parent(call)
                yield around if isinstance(around, ast.Attribute) else call


def forms(context: FileContext) -> list[Form]:
    """The autograd functions of a file for which another function of it can stand."""
    return context.index.once(("operator forms",), lambda: list(_forms(context)))


def _forms(context: FileContext) -> Iterator[Form]:
    index, users = context.index, Users(context)
    at_top = (each for each in index.tree.body if isinstance(each, ast.FunctionDef))
    functions = [each for each in at_top if each.name.endswith(_FORMS)]
    for node, bound, modules in users.modules() if functions else ():
        known = (each for each in modules if each and bound not in replaced(context))
        if any(module.operators != {} and not module.npu for module in known):
            made = [_form(index, node, bound, owner, functions) for owner in index.classes]
            complete = [form for form in made if form is not None]
            inside = {each for form in complete for each in ast.walk(form.owner)}
            uses = index.uses(bound, index.module_scope)
            if (node and catching(index, node, IMPORT_ERRORS)) or inside.issuperset(uses):
                yield from complete


def _form(
    index: ModuleIndex, node: Import | None, bound: str, owner: ast.ClassDef, functions: list[ast.FunctionDef]
) -> Form | None:
    """What stands for a class, if just one function takes nothing but what its ``forward`` gets."""
    is_function = any(index.qualified_name(base).endswith("autograd.Function") for base in owner.bases)
    methods = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)}
    forward = methods.get("forward")
    if not is_function or forward is None or "apply" in methods or not forward.decorator_list:
        return None
    given = {each.arg for each in parameters(forward.args)[1:]}
    uses = (each for each in ast.walk(forward) if getattr(each, "id", "") == bound)
    if forward.args.vararg or forward.args.kwarg or not any(uses):
        return None
    # A switch, or what may be None, asks for more: a function without it does something else.
    usual = ((each.arg, value) for each, value in defaults(forward.args) if isinstance(value, ast.Constant))
    optional = {name for name, value in usual if isinstance(value.value, (bool, type(None)))}
    named = ((each, {p.arg for p in parameters(each.args)}) for each in functions)
    fitting = [each for each, names in named if optional <= names <= given]
    return Form(node, bound, owner, forward, fitting[0]) if len(fitting) == 1 else None


def _apply(index: ModuleIndex, form: Form) -> Edit:
    """The edit that gives the class an ``apply`` of its own, above ``forward``."""
    first = form.forward.decorator_list[0]
    start = index.lines.starts[first.lineno - 1]
    indent, newline = " " * form.forward.col_offset, newline_of(index.text)
    usual = {each.arg: index.segment(value) for each, value in defaults(form.forward.args) if value}
    taken = [each.arg for each in parameters(form.forward.args)[1:]]
    given = ", ".join(f"{each.arg}={each.arg}" for each in parameters(form.function.args))
    names = [f"{name}={usual[name]}" if name in usual else name for name in taken]
    lines = ("@staticmethod", f"def apply({', '.join(names)}):", f"    return {form.function.name}({given})")
    return Edit(start, start, "".join(f"{indent}{line}{newline}" for line in lines) + newline)


_DEVICE = ("type", "device", "dev")  # or what ends so, behind an underscore
_ASKS = ("is_", "has_", "have_", "can_", "check_", "support_", "supports_")
_LOOKS_CLOSER = re.compile(r"capability|(?:^|_)(?:major|sm_?\d*)(?:_|$)|compute_cap|get_device_name")

_OTHER = {ast.Eq: "!=", ast.NotEq: "=="}


class BranchOptions(Options):
    """``only_cuda`` is a regular expression for names of what has no kernels for an NPU."""

    only_cuda: str = field(default=NEVER, metadata=EXPRESSION)


def find_branches(context: FileContext, rule: Rule[BranchOptions]) -> Iterator[Match]:
    """Questions for CUDA that become questions for an NPU, where a yes starts something of CUDA's own."""
    index, only_cuda = context.index, re.compile(rule.options.only_cuda, re.IGNORECASE)
    reported: set[ast.AST | None] = set()
    for question in _questions(index):
        test: ast.expr = index.call_of(question) or question  # the condition that the question is a part of
        while isinstance(around := index.parent(test), (ast.BoolOp, ast.UnaryOp, ast.Compare)):
            test = around
        # What is asked of Triton beside a card: ``HAS_TRITON and x.is_cuda``.
        beside = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else []
        asked = [bare_name(each) or called_name(each) for each in beside]
        triton = next((name for name in asked if "triton" in name.lower()), "")
        name, written = triton or _started(index, question, only_cuda), index.segment(test)
        if not name or around in reported or _LOOKS_CLOSER.search(written):
            continue
        # The condition may ask for the library, too, which an NPU's machine has not: ``HAS_XFORMERS``. For
        # Ascend there is a Triton.
        words = re.split(r"[\W_]+", name.lower()) if "triton" not in name.lower() else []
        if any(len(word) > 3 and word in written.lower() for word in words):
            continue
        if not has_npu_branch(index, question) and not guards_cuda_build(index, question):
            reported.add(around)
            yield found(context, rule, question, api=name)


def _questions(index: ModuleIndex) -> Iterator[ast.expr]:
    """``x.is_cuda``, ``torch.cuda.is_available()``, and the text of ``device.type == "cuda"``."""
    for ref in index.refs:
        if isinstance(ref, ast.Attribute) and isinstance(ref.ctx, ast.Load):
            asks = ref.attr == "is_cuda" and not options_like(ref.value) and index.call_of(ref) is None
            if asks or index.qualified_name(ref) == "torch.cuda.is_available":
                yield ref
    for string in index.strings:
        compared = index.parent(string)
        if isinstance(compared, ast.Compare) and string_value(string) == "cuda" and len(compared.ops) == 1:
            device = compared.left if compared.left is not string else compared.comparators[0]
            if type(compared.ops[0]) in _OTHER and bare_name(device).rpartition("_")[2] in _DEVICE:
                yield string


def _started(index: ModuleIndex, question: ast.expr, only_cuda: re.Pattern[str]) -> str:
    """What of CUDA's own a yes starts; empty for nothing."""
    skipped = (each for choice in choices(index, question) for each in choice.skipped)
    # Another condition asks for more.
    names = [name for each in skipped if not isinstance(each, ast.If) for name in _names_in(index, each)]
    holder, if_no, _alone = decided(index, question)
    if isinstance(holder, ast.Assign) and not if_no:
        names += map(last_name, holder.targets)
    elif isinstance(holder, ast.Return) and not if_no:
        names.append(getattr(index.function_of(holder), "name", ""))
    return next(filter(only_cuda.search, names), "")


def _names_in(index: ModuleIndex, node: ast.AST) -> Iterator[str]:
    """The names of what a statement calls, imports and switches on; torch's own have rules of their own."""
    for inner in walk(node) if not isinstance(node, (*FUNCTIONS, ast.ClassDef)) else ():
        if isinstance(inner, ast.Call):
            # Triton's kernel[grid](x), too.
            called = inner.func.value if isinstance(inner.func, ast.Subscript) else inner.func
            name = bare_name(called)
            asks = name.removeprefix("_").startswith(_ASKS)
            if not asks and not index.qualified_name(called).startswith("torch."):
                yield name
            yield from (each.arg or "" for each in inner.keywords if not _is_off(each.value))
        elif isinstance(inner, (ast.Import, ast.ImportFrom)):
            named = next(iter(imported(inner)), "")
            if not named.startswith("torch.") and not is_caught(index, inner, IMPORT_ERRORS):
                yield named
        elif (text := string_value(inner)) is not None:
            plain = text.isidentifier() and not text.isupper()  # os.environ["CUBLAS_WORKSPACE_CONFIG"]
            yield text if plain and "flash" not in text else ""
        elif isinstance(inner, ast.Assign) and not _is_off(inner.value):
            if not _LOOKS_CLOSER.search(index.segment(inner.value)):
                yield from (last_name(each) for each in inner.targets if not isinstance(each, ast.Subscript))


def _is_off(value: ast.expr) -> bool:
    asks = called_name(value).removeprefix("_").startswith(_ASKS)
    return asks or isinstance(value, ast.Name) or is_off(value)


def find_ways_of_the_cpu(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``if x.device.type == "cpu"``, where the rest goes to CUDA operators: an NPU takes the CPU's way."""
    index = context.index
    asked = [(node, _asked_of_device(index, node)) for node in index.strings if is_cpu(node)]
    every = find_uses(context, rule) if any(each for _node, each in asked) else ()
    uses = [item.node for item in every if item.finding.severity != "info"]  # those have one for NPUs
    operators = operator_uses(index, uses) if uses else set()
    for node, compare in asked if operators else ():
        if compare is not None and avoids_operators(_ways_of_the_cpu(index, node), operators):
            # As a question for CUDA, which an NPU answers as the CPU does.
            start, other = index.end(compare.left), _OTHER[type(compare.ops[0])]
            between = re.fullmatch(rb"\s*([!=]=)\s*", index.data[start : index.start(node)])
            edits = replace_text(index, node, "cpu", "cuda", 1) if between else []
            if between:
                edits.insert(0, Edit(start + between.start(1), start + between.end(1), other))
            yield found(context, rule, compare, api=index.segment(compare), edits=edits)


def _ways_of_the_cpu(index: ModuleIndex, node: String) -> list[Choice]:
    """What a question for the CPU chooses: what is not asked for goes to CUDA operators, as an NPU does."""
    return [Choice(taken, skipped) for skipped, taken in choices(index, node)]


def _asked_of_device(index: ModuleIndex, node: String) -> ast.Compare | None:
    """``x.device.type == "cpu"``, ``str(x.device) != "cpu"``."""
    compare = index.parent(node)
    if not isinstance(compare, ast.Compare) or len(compare.ops) != 1 or compare.comparators[0] is not node:
        return None
    device = compare.left
    if isinstance(device, ast.Call) and called_name(device) == "str" and device.args:
        device = device.args[0]
    if isinstance(device, ast.Attribute) and device.attr == "type":
        device = device.value
    is_one = type(compare.ops[0]) in _OTHER and bare_name(device) in ("device", "get_device")
    return compare if is_one else None
