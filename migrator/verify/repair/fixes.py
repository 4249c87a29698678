"""The fixes of runtime rules: each is a function that proposes changes, with the options that it takes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.removal import without_arguments
from migrator.names.tree import called_name
from migrator.verify.repair import devices, ranks
from migrator.verify.repair.origins import origin
from migrator.verify.repair.proposal import NoOptions, Proposal, Seen, replacing
from migrator.verify.repair.site import Code, Site


class Fixer(NamedTuple):
    """A fix: its options, and what proposes changes for what was seen."""

    options: type[Any]
    propose: Callable[[Seen, Any], Iterator[Proposal]]


@dataclass(frozen=True)
class Renaming:
    """``values``: what is replaced in a string or device; ``namespaces``: modules by their names.

    ``calls`` take such a string as their first argument, or by the keyword ``device``.
    """

    values: dict[str, str] = field(default_factory=dict)
    namespaces: dict[str, str] = field(default_factory=dict)
    calls: tuple[str, ...] = ()


def _renamed(seen: Seen, options: Renaming) -> Iterator[Proposal]:
    """A string, a device or a module of CUDA: in the place where it was made, or where it is used."""
    for site in seen.sites:
        for node, value in site.of_kind("str", "device", "namespace"):
            if isinstance(node.ctx if hasattr(node, "ctx") else None, ast.Store):
                continue
            if value["kind"] == "namespace":
                new = options.namespaces.get(value["value"])
                made = origin(site, node, seen.sources)
                for code, where in ((made.code, made.node), (site.code, node)) if new else ():
                    if not isinstance(where, ast.Constant):
                        yield replacing(code, where, new or "", _said(node, value), made.line)
                continue
            pair = next(((old, new) for old, new in options.values.items() if old in value["value"]), None)
            if pair is None:
                continue
            made = origin(site, node, seen.sources)
            for code, where in dict.fromkeys(((made.code, made.node), (site.code, node))):
                text = _with(code.segment(where), where, value["kind"], pair)
                yield replacing(code, where, text, _said(node, value), made.line)
        yield from _constants(site, options)
        yield from _computed(site, options)


def _constants(site: Site, options: Renaming) -> Iterator[Proposal]:
    """A string that is written there itself."""
    for node in ast.walk(site.expression):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for old, new in options.values.items():
                if re.match(rf"(?:torch\.)?{old}\b", node.value):
                    text = site.code.segment(node).replace(old, new)
                    yield replacing(site.code, node, text, _("it is {value!r}", value=node.value))


def _computed(site: Site, options: Renaming) -> Iterator[Proposal]:
    """What is computed where it is used: its value was not seen, but the failure tells that it is of CUDA."""
    known = {id(node) for node, _ in site.values()}
    for call in site.calls():
        if called_name(call) not in options.calls:
            continue
        given = [*call.args[:1], *(one.value for one in call.keywords if one.arg in ("device", "backend"))]
        for node in given:
            if id(node) not in known and isinstance(node, (ast.Call, ast.BinOp, ast.JoinedStr)):
                text = f"str({site.code.segment(node)})"
                text += "".join(f'.replace("{old}", "{new}")' for old, new in options.values.items())
                said = _("{call} is given {node}", call=called_name(call), node=ast.unparse(node))
                yield replacing(site.code, node, text, said)


def _with(source: str, node: ast.expr, kind: str, pair: tuple[str, str]) -> str:
    old, new = pair
    if isinstance(node, ast.Constant):
        return source.replace(old, new)
    text = f'str({source}).replace("{old}", "{new}")'
    return f"torch.device({text})" if kind == "device" else text


def _said(node: ast.expr, value: Mapping[str, Any]) -> str:
    return f"{ast.unparse(node)} was {value.get('value', value['kind'])!r}"


@dataclass(frozen=True)
class Argument:
    """``name`` of a keyword argument; ``value``: what a call of one of ``calls`` gets that has none."""

    name: str = ""
    value: str = ""
    calls: tuple[str, ...] = ()


def _without_argument(seen: Seen, options: Argument) -> Iterator[Proposal]:
    for site in seen.sites:
        for call in site.calls():
            keyword = next((one for one in call.keywords if one.arg == options.name), None)
            if keyword is None or (options.calls and called_name(call) not in options.calls):
                continue
            code = site.code
            edits = without_arguments(code, call, [keyword]) or []
            if len(call.keywords) + len(call.args) == 1 and isinstance(call.func, ast.Attribute):
                edits = [code.replaced(call, code.segment(call.func.value))]
            said = next(
                (_said(n, v) for n, v in site.values() if n is keyword.value),
                _("{name} is given", name=options.name),
            )
            if edits:
                made = origin(site, keyword.value, seen.sources).line
                yield Proposal(code, call, tuple(edits), said, made)


def _with_argument(seen: Seen, options: Argument) -> Iterator[Proposal]:
    for site in seen.sites:
        for call in site.calls():
            given = {one.arg for one in call.keywords}
            if called_name(call) not in options.calls or options.name in given:
                continue
            if given or call.args:
                said = _("{call} is not given {name}", call=called_name(call), name=options.name)
                yield Proposal(site.code, call, (_added(site.code, call, options),), said)
        # torch.load under another name, such as that of a partial: its value was seen.
        for call in site.calls():
            if not options.calls or not isinstance(call.func, ast.Name) or not call.args:
                continue
            made = origin(site, call.func, seen.sources)
            if made.node is not call.func and any(
                name in made.code.segment(made.node) for name in options.calls
            ):
                said = _("{id} loads", id=call.func.id)
                yield Proposal(site.code, call, (_added(site.code, call, options),), said, made.line)


def _added(code: Code, call: ast.Call, options: Argument) -> Edit:
    """One more argument behind those that a call has."""
    at = max(map(code.end, [*call.args, *call.keywords]))
    return Edit(at, at, f", {options.name}={options.value}")


@dataclass(frozen=True)
class Default:
    """``values``: by a regular expression for how a value that is None is made, what to take instead."""

    values: dict[str, str] = field(default_factory=dict)


def _instead_of_none(seen: Seen, options: Default) -> Iterator[Proposal]:
    for site in seen.sites:
        nodes: list[ast.expr] = [
            node for node, value in site.of_kind("NoneType") if not isinstance(node, ast.Constant)
        ]
        nodes += site.calls()
        if isinstance(site.statement, ast.Assign):  # what it unpacks
            nodes.append(site.statement.value)
        for node in dict.fromkeys(nodes):
            if isinstance(node, ast.BoolOp):
                continue
            made = origin(site, node, seen.sources)
            texts = [site.code.segment(node), made.code.segment(made.node), *_bodies(node, made.node, seen)]
            for pattern, value in options.values.items():
                if any(re.search(pattern, text) for text in texts):
                    text = f"({site.code.segment(node)} or {value})"
                    said = _("{node} was None", node=ast.unparse(node))
                    yield replacing(site.code, node, text, said, made.line)
                    break


def _bodies(node: ast.expr, made: ast.expr, seen: Seen) -> Iterator[str]:
    """What the project's functions that are called return."""
    names = {
        called_name(call) for each in (node, made) for call in ast.walk(each) if isinstance(call, ast.Call)
    }
    for code, function in seen.sources.functions(names):
        yield code.segment(function)


@dataclass(frozen=True)
class Names:
    """``names``: by a missing name, the expression that takes its place; ``otherwise`` for any other."""

    names: dict[str, str] = field(default_factory=dict)
    otherwise: str = ""


def _other_name(seen: Seen, options: Names) -> Iterator[Proposal]:
    match = re.search(r"has no attribute '(\w+)'", seen.failure.text if seen.failure else "")
    if match is None:
        return
    name, new = match[1], options.names.get(match[1], options.otherwise)
    for site in seen.sites[:1]:
        for node in ast.walk(site.expression):
            if isinstance(node, ast.Attribute) and node.attr == name and name in options.names:
                yield replacing(site.code, node, new, _("there is no {name}", name=name))
            if isinstance(node, ast.Call) and called_name(node) == "getattr" and len(node.args) == 2 and new:
                at = site.code.end(node.args[1])
                said = _("getattr asks for {name!r}", name=name)
                made = origin(site, node.args[1], seen.sources).line
                yield Proposal(site.code, node, (Edit(at, at, f", {new}"),), said, made)


def _on_cpu(seen: Seen, options: NoOptions) -> Iterator[Proposal]:
    """An operator that there is none of on NPUs, computed on the CPU, and its result brought back."""
    for site in seen.sites:
        tensors = [node for node, value in site.of_kind("tensor") if value["device"] == "npu"]
        call = next(iter(site.calls()), None)
        outer: ast.AST | None = call if call is not None else site.expression
        if isinstance(outer, ast.expr) and tensors:
            edits = [Edit(site.code.end(node), site.code.end(node), ".cpu()") for node in _outermost(tensors)]
            begin, end = site.code.start(outer), site.code.end(outer)
            opening, closing = ("(", ")") if not isinstance(outer, ast.Call) else ("", "")
            first = site.code.segment(tensors[0])
            edits += [Edit(end, end, f"{closing}.to({first}.device)")]
            edits += [Edit(begin, begin, opening)] if opening else []
            yield Proposal(
                site.code, outer, tuple(edits), _("{tensors} is on an NPU", tensors=ast.unparse(tensors[0]))
            )


def _outermost(nodes: list[ast.expr]) -> list[ast.expr]:
    inside = {id(child) for node in nodes for child in ast.walk(node) if child is not node}
    return [node for node in nodes if id(node) not in inside]


FIXES: dict[str, Fixer] = {
    "rename": Fixer(Renaming, _renamed),
    "without-argument": Fixer(Argument, _without_argument),
    "with-argument": Fixer(Argument, _with_argument),
    "instead-of-none": Fixer(Default, _instead_of_none),
    "other-name": Fixer(Names, _other_name),
    "on-cpu": Fixer(NoOptions, _on_cpu),
    "same-device": Fixer(NoOptions, devices.same_device),
    "to-host": Fixer(NoOptions, devices.to_host),
    "to-npu": Fixer(NoOptions, devices.module_to_npu),
    "npu-condition": Fixer(devices.Conditions, devices.npu_condition),
    "copied-collective": Fixer(ranks.Copied, ranks.copied_collective),
    "npu-of-rank": Fixer(NoOptions, ranks.npu_of_rank),
    "all-ranks": Fixer(NoOptions, ranks.all_ranks),
}
