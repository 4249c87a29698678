"""What a matcher is given, of Python and of other files, and what it gives back."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import intern
from typing import TYPE_CHECKING, Optional, TypedDict, cast

from migrator.api_support.verdict_type import Verdict, of_rule
from migrator.api_support.versions import TorchVersion
from migrator.files.document import is_notebook, is_of_ci
from migrator.files.source import Lines
from migrator.findings.finding import Edit, Finding, Fix, Operation, Safety, Severity
from migrator.language import _
from migrator.light import Declared, NamedTuple
from migrator.matchers.packs import Rule
from migrator.matchers.starting_words import last_part
from migrator.names.index import ModuleIndex
from migrator.names.tree import bare_name
from migrator.names.what_is import Elsewhere, Value, kept_on_the_cpu, what_is
from migrator.project.offers import CUDA_DEFAULT
from migrator.project.project import Project

if TYPE_CHECKING:  # a hook does without
    from typing_extensions import Unpack

    from migrator.other_files.index import Span, TextIndex
    from migrator.project.programs import Vocabularies

_STARTING = frozenset({"fit", "train", "run", "Fire", "main"})  # methods that run a program
_NOWHERE = ast.Pass()  # the node of a match in a text that has none


class FileContext(Declared):
    """One file, and what the run knows beside it; ``elsewhere`` asks the project's other files.

    ``hardware`` is the product line that it is for (``A2``), empty for none in particular. ``vocabularies``
    gives what the rule packs know of where device strings and backends go.
    """

    name: str
    index: ModuleIndex
    version: TorchVersion
    project: Project
    elsewhere: Optional[Elsewhere]
    hardware: str
    vocabularies: Callable[[], Vocabularies]

    def value(self, node: ast.expr) -> Value:
        """What an expression is."""
        return what_is(self.index, node, self.elsewhere)

    def is_on_cpu(self, *nodes: ast.expr) -> bool:
        """Whether a value was moved to the CPU, or made there, where the project has no other default."""
        made = not self.project.offers.of(CUDA_DEFAULT)
        return any(kept_on_the_cpu(self.index, node, made) for node in nodes)

    def fits(self, rule: Rule, name: str) -> bool:
        """Whether a name is one of a rule's, and of no package of the project."""
        is_torch = name.startswith("torch.")  # a folder of that name is mostly another
        return rule.fits(name) and (is_torch or not self.project.owns(name, self.name))

    def calls_of(self, rule: Rule) -> Iterator[tuple[ast.Call, str]]:
        """The calls of what a rule's ``match`` names, each with its qualified name."""
        for call in self.index.calls:
            name = self.index.qualified_name(call.func)
            if name and self.fits(rule, name):
                yield call, name

    def uses_of(self, rule: Rule) -> Iterator[tuple[ast.expr, str]]:
        """Where the names that a rule's ``match`` fits are read, in full or as what an import binds."""
        refs, ends = self.index.refs, set(map(last_part, rule.match))
        named = self.index.once(("names", len(refs)), lambda: self._by_names(refs))  # several rules ask that
        wanted = {each for name, some in named.items() for end in ends if end in name for each in some}
        for ref in refs if wanted else ():
            if ref not in wanted:
                continue
            node: ast.expr = ref
            while isinstance(node, ast.Attribute) and not rule.fits(self.index.qualified_name(node)):
                node = node.value
            name = self.index.qualified_name(node)
            if name and self.fits(rule, name) and isinstance(getattr(node, "ctx", None), ast.Load):
                yield node, name

    def _by_names(self, refs: Iterable[ast.expr]) -> dict[str, list[ast.expr]]:
        found: dict[str, list[ast.expr]] = {}
        for ref in refs:
            found.setdefault(self.index.qualified_name(ref), []).append(ref)
        return found

    def is_entry(self) -> bool:
        """Whether the file is one that is started, as every notebook is.

        It asks whether it is ``__main__``, or runs something at its top level: a loop, a ``with``, or a call
        whose result nobody keeps.
        """
        if is_notebook(self.name):
            return True
        index = self.index
        running = {node.name for node in index.functions} | {"print"}
        for node in index.tree.body:
            value = node.value if isinstance(node, ast.Expr) else None
            called = value.func if isinstance(value, ast.Call) else None
            starts = running if isinstance(called, ast.Name) else _STARTING
            if isinstance(node, (ast.For, ast.While, ast.With)) or bare_name(called) in starts:
                return True
            if isinstance(node, ast.If) and "__name__" in index.segment(node.test):
                return True
        return False


class TextContext(Declared):
    """One file other than Python, and what the run knows beside it; ``hardware`` as in ``FileContext``.

    ``vocabularies`` gives what the rule packs know of places in Python, for device strings and for backends;
    ``migrated`` is what the rules make of Python code, None where they change nothing.
    """

    index: TextIndex
    version: TorchVersion
    project: Project
    hardware: str
    vocabularies: Callable[[], Vocabularies]
    migrated: Callable[[str], str | None] = lambda code: None


# How certain a finding is that goes by nothing but a name.
ONLY_BY_NAME = "likely: only its name says so"


class Match(NamedTuple):
    """A finding, and whether its fix needs ``import torch_npu`` where ``node`` is.

    ``claims`` is a span in which no other rule makes a fix when this one makes none.
    """

    finding: Finding
    node: ast.AST
    needs_npu: bool = True
    claims: tuple[int, int] | None = None

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of its fix; none without one."""
        return self.finding.fix.edits if self.finding.fix else ()


class Said(TypedDict, total=False):
    """What a finding says otherwise than its rule, and what its fix writes."""

    api: str
    edits: Sequence[Edit]
    message: str
    advice: str
    severity: str
    safety: str
    operation: Operation


def found(
    context: FileContext,
    rule: Rule,
    node: ast.AST,
    *,
    status: str | None = None,
    verdict: Verdict | None = None,
    certainty: str = "",
    needs_npu: Optional[bool] = None,
    span: tuple[int, int] | None = None,
    claims: bool = False,
    form: str = "",
    **said: Unpack[Said],
) -> Match:
    """A finding of a rule at a node, with the rule's own words where none are given.

    ``{api}`` in the rule's message and advice is replaced by the API's name. Whether the fix needs torch_npu
    says the rule, else the caller, else the kind of the rule.
    """
    index, api = context.index, said.get("api", "")
    start, end = span = span or index.span(node)
    if index.data[end - 1 : end] in (b"\r", b"\n"):
        span = start, start + len(index.data[start:end].rstrip(b"\r\n"))
    finding = _finding(rule, index.lines, span, **said)._replace(
        verdict=verdict or of_rule(intern(api), rule.status if status is None else status),
        certainty=certainty,
        form=form,
        instead=rule.options.instead.replace("{name}", api.rpartition(".")[2]),
    )
    needs = (rule.options.needs_npu, needs_npu, rule.finder.needs_npu)
    return Match(finding, node, next(each for each in needs if each is not None), span if claims else None)


def found_in_text(context: TextContext, rule: Rule, span: Span, **said: Unpack[Said]) -> Match:
    """A finding of a rule at a place, with the rule's own words where none are given.

    What a CI system runs on which machines is not in the project: there only safe fixes are made.
    """
    edits = said.get("edits", ())
    if edits and (said.get("safety") or rule.fix) != "safe" and is_of_ci(context.index.name):
        written = " ".join(edit.text.strip() for edit in edits).strip() or "nothing"
        advice = _("If the job's machine has NPUs, write {written} here.", written=written)
        said = {**said, "edits": (), "advice": said.get("advice") or rule.advice or advice}
    return Match(_finding(rule, context.index.lines, span, **said), _NOWHERE, needs_npu=False)


def _finding(rule: Rule, lines: Lines, span: tuple[int, int], **said: Unpack[Said]) -> Finding:
    """A finding of a rule at a place of a text, with the rule's own words where none are given."""
    api, edits = said.get("api", ""), tuple(said.get("edits", ()))
    safety, operation = cast(Safety, said.get("safety") or rule.fix), said.get("operation", "MODIFY")
    return Finding(
        rule.code,
        _filled(said.get("message") or rule.message or rule.summary, api),
        *lines.ends(span),
        cast(Severity, said.get("severity") or rule.severity),
        rule.name,
        intern(api),
        _filled(said.get("advice") or rule.advice, api),
        Fix(edits, safety, operation) if edits else None,
        span,
        url=next(iter(rule.links), ""),
        verdict=of_rule(intern(api), rule.status),
    )


def _filled(text: str, api: str) -> str:
    # A thousand findings of one kind have one message.
    return intern(text.replace("{api}", api) if "{api}" in text else text)


def instead_of(index: ModuleIndex, node: ast.AST, text: str) -> Edit:
    """The edit that writes something else in a node's place."""
    return Edit(*index.span(node), text)


def put_around(index: ModuleIndex, node: ast.AST, before: str, behind: str) -> list[Edit]:
    """The edits that write something before and behind a node."""
    start, end = index.span(node)
    return [Edit(start, start, before), Edit(end, end, behind)]


def insertion(
    context: FileContext,
    rule: Rule,
    node: ast.AST,
    edit: Edit,
    api: str = "torch_npu",
    message: str = "",
    safety: Safety = "safe",  # it is needed by changes that tell how safe they are
) -> Match:
    """The insertion of a statement beside ``node``."""
    about: Said = {"api": api, "edits": [edit], "message": message, "safety": safety, "operation": "INSERT"}
    return found(context, rule, node, **about)
