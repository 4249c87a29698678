"""Fixes for programs of several ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.names.tree import called_name
from migrator.verify.repair.origins import origin
from migrator.verify.repair.proposal import NoOptions, Proposal, Seen
from migrator.verify.repair.site import Code, Sources


@dataclass(frozen=True)
class Copied:
    """``calls`` change their first argument; ``dtypes``: by one that HCCL refuses, what converts it."""

    calls: tuple[str, ...] = ()
    dtypes: dict[str, str] = field(default_factory=dict)


def copied_collective(seen: Seen, options: Copied) -> Iterator[Proposal]:
    """A collective on a copy of another type, the result of which is copied back: the tensor stays itself."""
    for site in seen.sites:
        call = next((each for each in site.calls() if called_name(each) in options.calls and each.args), None)
        statement = site.statement
        if call is None or not isinstance(statement, ast.Expr) or statement.value is not call:
            continue
        value = next((value for node, value in site.values() if node is call.args[0]), None)
        convert = options.dtypes.get(value["dtype"]) if value and value["kind"] == "tensor" else None
        if convert is None or not site.code.stands_alone(statement):
            continue
        name, tensor = "reduced", site.code.segment(call.args[0])
        begin, end = site.code.start(statement), site.code.end(statement)
        indent = site.code.indent(statement)
        edits = (
            Edit(begin, begin, f"{name} = {tensor}.{convert}()\n{indent}"),
            site.code.replaced(call.args[0], name),
            Edit(end, end, f"\n{indent}{tensor}.copy_({name})"),
        )
        said = f"{tensor} is {value['dtype'] if value else ''}"
        yield Proposal(site.code, statement, edits, said, origin(site, call.args[0], seen.sources).line)


def npu_of_rank(seen: Seen, options: NoOptions) -> Iterator[Proposal]:
    """Each rank takes the NPU of its own number, right after the group is there."""
    for code, statement in _joins(seen.sources):
        if not code.stands_alone(statement):
            continue
        at, indent = code.end(statement), code.indent(statement)
        number = "torch.distributed.get_rank() % torch.npu.device_count()"
        chosen = Edit(at, at, f"\n{indent}torch.npu.set_device({number})")
        edits = (chosen, *code.import_of_torch())
        yield Proposal(code, statement, edits, _("no rank has chosen its NPU before the first collective"))
    for code in seen.sources.every():
        for node in ast.walk(code.tree):
            if isinstance(node, ast.Call) and called_name(node) == "set_device" and len(node.args) == 1:
                edit = code.replaced(node.args[0], 'int(__import__("os").environ["LOCAL_RANK"])')
                said = _("set_device is given {args}", args=code.segment(node.args[0]))
                yield Proposal(code, node, (edit,), said)


def _joins(sources: Sources) -> Iterator[tuple[Code, ast.stmt]]:
    for code in sources.every():
        for node in ast.walk(code.tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                if called_name(node.value) == "init_process_group":
                    yield code, node


def all_ranks(seen: Seen, options: NoOptions) -> Iterator[Proposal]:
    """A collective that is called by some ranks only, at the end of an ``if``: behind it, where all come."""
    for who, file, line in seen.waiting:
        code = seen.sources.code(file)
        if code is None:
            continue
        for node in ast.walk(code.tree):
            last = node.body[-1] if isinstance(node, ast.If) and not node.orelse else None
            if last is None or last.lineno != line or not isinstance(last, ast.Expr):
                continue
            assert isinstance(node, ast.If)
            if "rank" not in code.segment(node.test).lower() or len(node.body) < 2:
                continue
            begin = code.lines.starts[last.lineno - 1]
            edit = Edit(begin, code.start(last), code.indent(node))
            said = _("{who} waits in it, and the others never call it", who=who)
            yield Proposal(code, last, (edit,), said, code.place(node))
