"""What libraries do with CUDA by themselves.

Their functions go to it where no device is given, or whatever is given: which do, in which versions, and what
helps is in ``api_db/library_defaults.csv``. Others are those that the analysis of a library has found not to
work, or not always. NVIDIA's own are shared libraries of CUDA, and ONNX Runtime's provider.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from functools import cache, partial
from itertools import takewhile

from migrator.api_support.libraries import LibraryDefault, defaults
from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.matchers.argument_edits import added_argument, without_entries
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.npu_import import imports_package, statement_separator, torch_module
from migrator.matchers.options import EXPRESSION, LONGEST, NEVER
from migrator.matchers.packs import Options, Rule
from migrator.matchers.query.uses import inherited_from, of_base
from migrator.names.conditions import is_for_cuda_builds
from migrator.names.device_strings import is_docstring
from migrator.names.goes_to import CHOICES, LISTS, behind
from migrator.names.index import ModuleIndex
from migrator.names.made_from import made_from, parameter_of
from migrator.names.strings import replace_text
from migrator.names.tree import (
    FUNCTIONS,
    argument_of,
    called_name,
    hands_on,
    is_none,
    only_target,
    string_value,
    targets_of,
)
from migrator.names.tree import defaults as defaults_of
from migrator.project.project import Project
from migrator.project.wanted_versions import limits_hold, wanted_libraries

_QUESTIONS = ("isinstance", "issubclass", "hasattr", "type", "print")  # about a class, and no call of it
_MESSAGES = {
    "cpu": N_("{api} without a device uses CUDA or the CPU, not NPUs{versions}"),
    "disabled": N_("{api} creates mixed precision for CUDA, which is off on NPUs{versions}"),
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
    of_outcome = (each.api for every in defaults().values() for each in every if each.outcome in outcomes)
    return frozenset(name.rpartition(".")[2] for name in of_outcome)


def find_defaults(context: FileContext, rule: Rule[DefaultOptions]) -> Iterator[Match]:
    """Calls of such functions that are not given what would help, and what is handed on to be called."""
    index = context.index
    for owner in index.classes:  # a class of the file with such a base is called by its own name
        if any(index.qualified_name(base) in defaults() for base in owner.bases):
            index.uses_of(owner)
            for function in (each for each in owner.body if isinstance(each, FUNCTIONS)):
                for statement in index.statements_in(function):
                    index.expand(statement)
    for ref in (each for each in index.refs if index.qualified_name(each) in defaults()):
        sink, name = behind(index, ref, (*CHOICES, "value")), index.qualified_name(ref)
        kept, known = only_target(sink.holder), defaults()[name][0]  # in a table, or a choice
        for use in index.uses_of(kept) if isinstance(kept, ast.Name) else ():
            index.expand(index.statement_of(use))
        handed_on = sink.kind in ("argument", "default") and called_name(sink.holder) not in _QUESTIONS
        if handed_on and not known.argument and known.outcome in rule.options.outcomes:
            said = _(_MESSAGES[known.outcome], api=name, how="", versions="")
            yield found(context, rule, ref, api=name, message=said, advice=known.advice, severity="warning")
    for call in index.calls:
        default, sure = _default(context, call)
        if default is not None and default.outcome in rule.options.outcomes:
            yield from _reported(context, rule, call, default, sure)


def _default(context: FileContext, call: ast.Call) -> tuple[LibraryDefault | None, bool]:
    """What is known of the function that is called, and whether it is so in the project's version of it.

    A project that names no version gets the newest.
    """
    name = _called(context.index, call)
    held = [] if name else _held(context.index, call.func)
    name = name or next((each for each in held if each in defaults()), "")
    every = defaults().get(name, ())
    if not every and isinstance(call.func, ast.Attribute):
        methods = defaults().get(f".{call.func.attr}", ())
        every = tuple(each for each in methods if imports_package(context.index, each.api.partition(".")[0]))
    elif context.project.owns(name, context.name):
        return None, False
    wanted = wanted_libraries(context.project.requirements) if every else {}
    doubtful = None
    for default in every:
        limits = (wanted.get(each) for each in default.library.lower().split())
        holds = limits_hold(default.conditions, next(filter(None, limits), ()))
        if holds or (holds is None and not default.until):
            return default, all(each in defaults() for each in held)
        doubtful = default if holds is None else doubtful
    return (doubtful if doubtful is not None and doubtful.outcome != "cpu" else None), False


def _called(index: ModuleIndex, call: ast.Call) -> str:
    """The full name of what is called: a base's for ``super().__init__`` and a class that has no own."""
    function = call.func
    of_super = of_base(index, function) if called_name(call) == "__init__" else ""
    return (
        index.qualified_name(function)
        or of_super.removesuffix(".__init__")
        or inherited_from(index, function)
    )


def _held(index: ModuleIndex, function: ast.expr) -> list[str]:
    """The full names of what may be called, where a table has it or a choice; empty for what is no name."""
    made = () if isinstance(function, ast.Attribute) else made_from(index, function)
    return [index.qualified_name(each) for each in made if isinstance(each, (ast.Name, ast.Attribute))]


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
        if not _may_be_default(index, given, default):
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
    api = _called(index, call) or f".{default.api.rpartition('.')[2]}"
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


def _may_be_default(index: ModuleIndex, given: ast.expr, default: LibraryDefault) -> bool:
    """Whether a name or attribute may hold what is as good as none given: the default of a parameter."""
    if default.outcome != "cpu" or not isinstance(given, (ast.Name, ast.Attribute)):
        return False
    origins = list(made_from(index, given))
    for parameter in filter(None, [parameter_of(index, each) for each in origins]):
        origins += filter(None, [list(defaults_of(parameter.function.args))[parameter.place][1]])
    return any(_written(each) in default.default for each in origins)


def _written(value: ast.expr) -> str:
    text = string_value(value)
    return ast.unparse(value) if text is None else f'"{text}"'


def _edits(index: ModuleIndex, call: ast.Call, default: LibraryDefault) -> list[Edit] | None:
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
        if given is not None and not isinstance(given, ast.Constant):  # every other value stays what it is
            name = index.segment(given)
            same = (f"{name} {'is' if each == 'None' else '=='} {each}" for each in default.default)
            value = f"({value}) if {' or '.join(same)} else {name}"
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


_LOADERS = ("ctypes.CDLL", "ctypes.cdll.LoadLibrary", "ctypes.PyDLL")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Assert)
_LEAST = 4  # spaces
_TEXTS = (ast.Constant, ast.JoinedStr)


class LibraryOptions(Options):
    """``goes_on`` is a regular expression for what stands behind a library's name.

    ``not_below``: one for folders of the program's own; ``optional`` are functions that it does without.
    """

    goes_on: str = field(default="", metadata=EXPRESSION)
    not_below: str = field(default=NEVER, metadata=EXPRESSION)
    optional: tuple[str, ...] = ()


def find_shared(context: FileContext, rule: Rule[LibraryOptions]) -> Iterator[Match]:
    """The texts that name a library; to load it stops the program."""
    index = context.index
    names = sorted(rule.match, key=len, reverse=True)
    goes_on = re.compile(rule.options.goes_on)
    for node in index.strings:
        text = string_value(node) or ""
        named = (name for name in names if name in text)
        api = next((each for each in named if goes_on.match(text.partition(each)[2][:LONGEST])), "")
        if not api or is_docstring(index, node) or behind(index, node, LISTS).name in ("id", "ids"):
            continue  # it is shown: of pytest's parameters
        call = index.parent(node)
        if isinstance(call, ast.BinOp) and re.search(rule.options.not_below, index.segment(call.left)):
            continue
        if not isinstance(call, ast.Call) or index.qualified_name(call.func) not in _LOADERS:
            yield found(context, rule, node, api=api)
            continue
        if is_for_cuda_builds(index, call):
            yield found(context, rule, call, api=api, severity="info")
            continue
        message = _("{api} is a CUDA library: loading it on an NPU machine raises OSError", api=api)
        held = index.parent(call)
        span, edits = index.span(call), list[Edit]()
        if isinstance(held, ast.Assign) and (guarded := _on_cuda_only(index, rule.options, held)):
            span, edits = guarded
        says = partial(found, api=api, message=message, severity="blocker")
        yield says(context, rule, call, edits=edits, span=span, needs_npu=False if edits else None)


def _on_cuda_only(
    index: ModuleIndex, options: LibraryOptions, held: ast.Assign
) -> tuple[tuple[int, int], list[Edit]] | None:
    """The change that puts a library, its calls and what is made for them behind a question for CUDA.

    None where a program does not do without one of the calls.
    """
    target = only_target(held)
    uses = index.uses_of(target) if isinstance(target, ast.Name) else ()
    every = [index.call_of(index.parent(use)) for use in uses]
    calls = [call for call in every if call is not None and called_name(call) in options.optional]
    if not calls or len(calls) < len(every) or any(len(index.bindings(use)) != 1 for use in uses):
        return None
    torch, block = torch_module(index, held.value), index.block(held)
    statements = [index.statement_of(call) for call in calls]
    if torch is None or any(each not in block for each in statements):
        return None
    first = block.index(held)
    places = [block.index(each) for each in statements if isinstance(each, ast.stmt)]
    made = _names(held.targets[0]).union(*(_names(each) for call in calls for each in call.args))
    last = max(places)
    behind = takewhile(lambda each: isinstance(each, ast.Assert) and _names(each) & made, block[last + 1 :])
    inside = block[first : last + 1 + len([*behind])]
    if min(places) < first or not all(isinstance(each, _SIMPLE) for each in inside):
        return None
    start, end = index.start(inside[0]), index.end(inside[-1])
    lines = range(index.line_of(start), index.line_of(end - 1) + 1)
    begins = [index.line_span(line, line)[0] for line in lines]
    indent = index.data[begins[0] : start]
    texts = (node for each in inside for node in ast.walk(each) if isinstance(node, _TEXTS))
    # What stands before the lines of a text is a part of it.
    is_long = any(node.lineno != node.end_lineno for node in texts)
    if indent.strip() or is_long or _is_used_behind(index, inside):
        return None
    question = f"{indent.decode()}if {torch}.version.cuda:{newline_of(index.text)}"
    step = "\t" if b"\t" in indent else " " * _LEAST
    filled = [at for at in begins if index.data[at : at + 1] not in (b"\n", b"\r")]
    edits = [Edit(at, at, question + step if at == begins[0] else step) for at in filled]
    return (start, end), edits


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _is_used_behind(index: ModuleIndex, inside: Sequence[ast.stmt]) -> bool:
    """Whether something that the statements bind is read elsewhere."""
    for statement in inside:
        targets = targets_of(statement)
        names = [target for target in targets if isinstance(target, ast.Name)]
        if isinstance(statement, ast.AnnAssign) or len(names) < len(targets):
            return True
        if any(index.statement_of(use) not in inside for name in names for use in index.uses_of(name)):
            return True
    return False


class ProviderOptions(Options):
    """The options with another name in the NPU's provider (``renamed``), and the missing ones (``gone``)."""

    renamed: dict[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()


def find_provider_options(context: FileContext, rule: Rule[ProviderOptions]) -> Iterator[Match]:
    """Dictionaries of options behind a provider's name: ``("CUDAExecutionProvider", {"device_id": 0})``.

    One that a variable holds is changed where every use of the variable is such a place.
    """
    index, options = context.index, rule.options
    known = {*options.renamed, *options.gone}
    given = (index.parent(each) for each in index.strings if string_value(each) in known)
    for entries in dict.fromkeys(each for each in given if isinstance(each, ast.Dict)):
        keys = {key: text for key in entries.keys if key and (text := string_value(key)) in known and text}
        pairs = [(each, index.parent(each)) for each in index.reads_of(entries)]
        parted = [(each, pair.elts if isinstance(pair, ast.Tuple) else []) for each, pair in pairs]
        of_provider = [
            parts[1:] == [each] and {*map(string_value, made_from(index, parts[0]))} <= {*rule.match}
            for each, parts in parted
        ]
        if not keys or not any(of_provider):
            continue
        gone = [key for key, text in keys.items() if text in options.gone]
        edits = without_entries(index, entries, gone) if gone else []
        if edits is not None and all(of_provider):
            for key, text in keys.items():
                if text in options.renamed and isinstance(key, ast.Constant):
                    edits += replace_text(index, key, text, options.renamed[text])
        else:  # one cannot be taken out
            edits = []
        yield found(context, rule, next(iter(keys)), api=", ".join(keys.values()), edits=sorted(edits))
