"""What a matcher is given, and what it gives back."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

from migrator.api_support.versions import TorchVersion
from migrator.findings.finding import Edit, Finding
from migrator.matchers.packs import Rule
from migrator.names.index import ModuleIndex
from migrator.names.values import Elsewhere, Value, value_of
from migrator.project.project import Project


@dataclass(frozen=True)
class FileContext:
    """One file, and what the run knows beside it; ``elsewhere`` asks the project's other files.

    ``hardware`` is the product line that it is for (``A2``), empty for none in particular.
    """

    name: str
    index: ModuleIndex
    version: TorchVersion
    project: Project
    elsewhere: Optional[Elsewhere] = None
    hardware: str = ""

    def value(self, node: ast.expr) -> Value:
        """What an expression is."""
        return value_of(self.index, node, self.elsewhere)


@dataclass(frozen=True)
class Match:
    """A finding, and whether its fix needs ``import torch_npu`` where ``node`` is.

    ``claims`` is a span in which no other rule makes a fix when this one makes none.
    """

    finding: Finding
    node: Any
    needs_npu: bool = True
    claims: tuple[int, int] | None = None


def found(
    context: FileContext,
    rule: Rule,
    node: Any,
    *,
    api: str = "",
    edits: Sequence[Edit] = (),
    message: str = "",
    advice: str = "",
    status: str | None = None,
    severity: str = "",
    safety: str = "",
    documents: str = "",
    kernel: str = "",
    certainty: str = "",
    needs_npu: bool = True,
    span: tuple[int, int] | None = None,
    claims: bool = False,
    form: str = "",
) -> Match:
    """A finding of a rule at a node, with the rule's own words where none are given.

    ``{api}`` in the rule's message and advice is replaced by the API's name.
    """
    index = context.index
    start, end = span or (index.start(node), index.end(node))
    line = index.line_of(start)
    end_line = index.line_of(max(start, end - 1))
    finding = Finding(
        code=rule.code,
        api=api,
        line=line,
        end_line=end_line,
        column=index.column_of(start),
        message=(message or rule.message or rule.summary).replace("{api}", api),
        severity=severity or rule.severity,
        status=rule.status if status is None else status,
        safety=(safety or rule.fix) if edits else "",
        operation="MODIFY" if edits else "",
        before=source_lines(index, edits),
        after=source_lines(index, edits, applied=True),
        advice=(advice or rule.advice).replace("{api}", api),
        edits=tuple(edits),
        documents=documents,
        kernel=kernel,
        certainty=certainty,
        form=form,
        instead=rule.options.instead.replace("{name}", api.rpartition(".")[2]),
        span=(start, end),
    )
    if rule.options.needs_npu is not None:
        needs_npu = rule.options.needs_npu
    return Match(finding, node, needs_npu, (start, end) if claims else None)


def insertion(context: FileContext, rule: Rule, node: Any, edit: Edit) -> Match:
    """The insertion of a statement behind ``node``."""
    index = context.index
    item = found(context, rule, node, api="torch_npu", edits=[edit])
    line = index.line_of(max(edit.start - 1, 0))
    text = edit.text.strip("; \r\n")
    finding = replace(item.finding, line=line, end_line=line, operation="INSERT", before="", after=text)
    return replace(item, finding=finding)


def source_lines(index: ModuleIndex, edits: Iterable[Edit], applied: bool = False) -> str:
    """The whole source lines that edits touch, before or after them."""
    edits = sorted(edits, key=lambda edit: edit.start)
    if not edits:
        return ""
    first = index.line_of(edits[0].start)
    last = index.line_of(max(edit.end for edit in edits))
    start, end = index.line_span(first, last)
    data = index.data[start:end]
    if applied:
        for edit in reversed(edits):
            data = data[: edit.start - start] + edit.text.encode("utf-8") + data[edit.end - start :]
    return data.decode("utf-8").strip()
