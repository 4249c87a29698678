"""Functions of libraries that go to CUDA by themselves where no device is given, or whatever is given.

Which do, in which versions, and what helps is in ``api_db/library_defaults.csv``. Others are those that the
analysis of a library has found not to work, or not always.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Optional

from migrator.api_support.library_defaults import LibraryDefault, Limits, known
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.matchers.argument_edits import added_argument
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.npu_import import imports_package, statement_separator
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, hands_on, is_none, string_value

if TYPE_CHECKING:
    from migrator.project.project import Project


_MESSAGES = {
    "cpu": N_("{api} without a device uses CUDA or the CPU, not NPUs{versions}"),
    "disabled": N_("{api} creates a gradient scaler for CUDA, which disables itself on NPUs{versions}"),
    "raises": N_("{api} {how}uses CUDA by default{versions}"),
}


class DefaultOptions(Options):
    """``outcomes``: what such a call comes to, of those that a rule is about."""

    outcomes: tuple[str, ...] = ()

    def words_in(self, project: Project, words: frozenset[str]) -> frozenset[str]:
        """Without the project's own packages: a library's own files name it everywhere."""
        return words - project.main_packages

    def words_of_file(self) -> Collection[str]:
        """The last parts of the functions' names."""
        return _last_parts(self.outcomes)


@cache
def _last_parts(outcomes: tuple[str, ...]) -> frozenset[str]:
    of_outcome = (each.api for every in known().values() for each in every if each.outcome in outcomes)
    return frozenset(name.rpartition(".")[2] for name in of_outcome)


def find(context: FileContext, rule: Rule[DefaultOptions]) -> Iterator[Match]:
    """Calls of such functions that are not given what would help."""
    for call in context.index.calls:
        default, sure = _default(context, call)
        if default is not None and default.outcome in rule.options.outcomes:
            yield from _reported(context, rule, call, default, sure)


def _default(context: FileContext, call: ast.Call) -> tuple[LibraryDefault | None, bool]:
    """What is known of the function that is called, and whether it is so in the project's version of it.

    A project that names no version gets the newest.
    """
    name = context.index.qualified_name(call.func)
    every = known().get(name, ())
    if not every and isinstance(call.func, ast.Attribute):
        methods = known().get(f".{call.func.attr}", ())
        every = tuple(each for each in methods if imports_package(context.index, each.api.partition(".")[0]))
    elif context.project.owns(name, context.name):
        return None, False
    wanted: Mapping[str, Limits] = {}
    if every and context.project.requirements:  # most ask for none
        from migrator.project.wanted_versions import wanted_libraries

        wanted = wanted_libraries(context.project.requirements)
    doubtful = None
    for default in every:
        limits = (wanted.get(each) for each in default.library.lower().split())
        holds = default.holds(next(filter(None, limits), None))
        if holds or (holds is None and not default.until):
            return default, True
        doubtful = default if holds is None else doubtful
    return (doubtful if doubtful is not None and doubtful.outcome != "cpu" else None), False


def _reported(
    context: FileContext, rule: Rule, call: ast.Call, default: LibraryDefault, sure: bool
) -> Iterator[Match]:
    index = context.index
    given = argument_of(call, default.argument, default.position) if default.argument else None
    if given is None and default.argument and (hands_on(call) or "missing" in default.harmless):
        return
    if given is not None and _written(given) in default.default:
        given = None
    elif given is not None and (default.value or _written(given) in default.harmless):
        return
    if any(f"{each.arg}={_written(each.value)}" == default.unless for each in call.keywords):
        return
    literal = given is None or isinstance(given, ast.Constant)
    chosen = any(each.arg == default.unless and not is_none(each.value) for each in call.keywords)
    edits = _edits(index, call, default) if sure and not chosen else None
    if given is not None and not literal and default.outcome == "raises" and "False" in default.harmless:
        # What asks for CUDA asks for NPUs after a migration; the library computes on the CPU in all versions.
        edits = [instead_of(index, given, "False")]
    if edits == []:
        return  # an earlier pass has fixed it
    api = index.qualified_name(call.func) or f".{default.api.rpartition('.')[2]}"
    how = _("without {argument} ", argument=default.argument) if default.value else ""
    about = {"api": api, "how": how, "versions": f" ({default.versions})" if default.versions else ""}
    message, advice = _(_MESSAGES[default.outcome], **about), default.advice
    if default.value:
        give = {"argument": default.argument, "value": default.value, "advice": advice}
        advice = _("Give {argument}={value}. {advice}", **give).rstrip()
    certain = sure and (literal or default.outcome == "cpu")
    severity = "warning" if default.outcome == "disabled" or not certain else ""
    says = partial(found, message=message, advice=advice, severity=severity)
    yield says(context, rule, call, api=api, edits=edits or ())


def _written(value: ast.expr) -> str:
    text = string_value(value)
    return ast.unparse(value) if text is None else f'"{text}"'


def _edits(index: ModuleIndex, call: ast.Call, default: LibraryDefault) -> Optional[list[Edit]]:
    """The edits that give the argument, or fix the library; empty where it is fixed, None without any."""
    if default.value:
        aliases = [each for node in index.imports if isinstance(node, ast.Import) for each in node.names]
        bound = {each.name.partition(".")[0] for each in aliases if not each.asname}
        if default.value.startswith("torch.") and "torch" not in bound:
            return None
        given, value = argument_of(call, default.argument, default.position), default.value
        if default.outcome == "cpu":  # so does the function where there is no CUDA
            module = "torch" if "torch" in bound else "torch_npu"
            value = f'{value} if {module}.npu.is_available() else "cpu"'
        if given is not None:
            return [instead_of(index, given, value)]
        return added_argument(index, call, default.argument, value)
    statements, statement = default.statement.split("; "), index.statement_of(call)
    if default.statement and statements[-1].partition("=")[0] in index.text:  # whatever device it gives
        return []
    if not default.statement or not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)):
        return None
    start, separator = index.start(statement), statement_separator(index, statement)
    return [Edit(start, start, separator.join([*statements, ""]))]


def find_functions(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Names that stand for functions, classes and methods that the analysis of a library has found."""
    libraries = context.project.libraries
    for ref in context.index.refs:
        name = context.index.qualified_name(ref) if isinstance(getattr(ref, "ctx", None), ast.Load) else ""
        while name and name not in libraries:
            name = name.rpartition(".")[0]
        if not name:
            continue
        known = libraries[name]
        condition = f", if: {known.condition}" if known.condition else ""
        about = {"name": known.name, "reached": known.reached, "condition": condition}
        message = _("{name} may not work on NPUs: it reaches {reached}{condition}", **about)
        says = partial(found, status="unknown", severity="warning")
        if known.verdict == "unsupported":
            message = _("{name} cannot work on NPUs: it reaches {reached}", **about)
            says = partial(found, status="unsupported", severity="error")
        message = f"{message}; by {known.chain}"
        yield says(context, rule, ref, api=known.name, message=message, advice=known.tips)
