"""Fixes for values that are on the wrong device."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.names.tree import bare_name, called_name
from migrator.verify.repair.origins import origin
from migrator.verify.repair.proposal import NoOptions, Proposal, Seen
from migrator.verify.repair.site import Code, Site

_NPU = '"npu"'


def same_device(seen: Seen, options: NoOptions) -> Iterator[Proposal]:
    """The operands on the CPU go to the device of one on an NPU; what is changed in place stays."""
    for site in seen.sites:
        cpu, npu = _operands(site)
        if not cpu:
            continue
        other = f"{site.code.segment(npu[0][0])}.device" if npu else _NPU
        stays = [node for node, _ in cpu if _is_changed(site, node)]
        if stays and npu:
            home = f"{site.code.segment(stays[0])}.device"
            moved = [(node, value) for node, value in npu if not _is_changed(site, node)]
            edits = tuple(_moved(site.code, node, value, home) for node, value in moved)
            if edits:
                yield _proposal(seen, site, stays[0], cpu[0][1], edits)
            continue
        edits = tuple(_moved(site.code, node, value, other) for node, value in cpu)
        yield _proposal(seen, site, cpu[0][0], cpu[0][1], edits)


def _proposal(
    seen: Seen, site: Site, node: ast.expr, value: Mapping[str, Any], edits: tuple[Edit, ...]
) -> Proposal:
    shape = "×".join(map(str, value.get("shape", ()))) or value.get("class", value["kind"])
    what = f"{value.get('dtype', '')} {shape}".strip()
    said = _("{node} is on the CPU ({what})", node=ast.unparse(node), what=what)
    return Proposal(site.code, node, edits, said, origin(site, node, seen.sources).line)


_Operands = list[tuple[ast.expr, Mapping[str, Any]]]


def _operands(site: Site) -> tuple[_Operands, _Operands]:
    """The expressions with tensors on the CPU, and those with some on an NPU; none inside another one."""
    cpu: _Operands = []
    npu: _Operands = []
    taken: set[int] = set()
    for node, value in site.of_kind("tensor", "module", "list", "tuple", "dict"):
        if id(node) in taken or _is_part(site, node):
            continue
        devices = [value["device"]] if value["kind"] == "tensor" else list(value.get("devices", ()))
        if value["kind"] == "tensor" and not value["shape"] and value["device"] == "cpu":
            continue  # a number
        if value["kind"] in ("list", "tuple", "dict") and isinstance(site.code.parent(node), ast.Subscript):
            continue  # of which one item is taken
        if "cpu" in devices:
            cpu.append((node, value))
            taken |= {id(child) for child in ast.walk(node)}
        elif "npu" in devices and value["kind"] == "tensor":
            npu.append((node, value))
            taken |= {id(child) for child in ast.walk(node)}
    return cpu, npu


def _is_part(site: Site, node: ast.expr) -> bool:
    """Whether only an attribute of a value is asked for, such as ``x.shape``: it takes no part itself."""
    up = site.code.parent(node)
    return isinstance(up, ast.Attribute) and site.code.call_of(up) is None


def _is_changed(site: Site, node: ast.expr) -> bool:
    """Whether an operand is changed in place: ``x.add_(y)``, ``x += y``."""
    up = site.code.parent(node)
    if isinstance(up, ast.AugAssign) and up.target is node:
        return True
    while isinstance(up, ast.Attribute):
        call = site.code.call_of(up)
        if call is None:
            return False
        if up.attr.endswith("_") and not up.attr.startswith("_"):
            return True
        up = site.code.parent(call)
    return False


def _moved(code: Code, node: ast.expr, value: Mapping[str, Any], device: str) -> Edit:
    source = code.segment(node)
    if value["kind"] in ("list", "tuple"):
        return code.replaced(node, f"[each.to({device}) for each in {source}]")
    if value["kind"] == "dict":
        return code.replaced(node, f"{{key: each.to({device}) for key, each in {source}.items()}}")
    return Edit(code.end(node), code.end(node), f".to({device})")


def to_host(seen: Seen, options: NoOptions) -> Iterator[Proposal]:
    """What NumPy is given comes from the host."""
    for site in seen.sites:
        for node, value in site.of_kind("tensor"):
            if value["device"] == "npu" and not _is_part(site, node):
                at = site.code.end(node)
                made = origin(site, node, seen.sources).line
                said = _("{node} is on an NPU", node=ast.unparse(node))
                yield Proposal(site.code, node, (Edit(at, at, ".detach().cpu()"),), said, made)


def module_to_npu(seen: Seen, options: NoOptions) -> Iterator[Proposal]:
    """A module on the CPU goes to the NPU where it is called."""
    for site in seen.sites:
        for node, value in site.of_kind("module"):
            if "cpu" in value["devices"] and not _is_part(site, node):
                yield _proposal(seen, site, node, value, (_moved(site.code, node, value, _NPU),))


@dataclass(frozen=True)
class Conditions:
    """``test``: what asks for an NPU."""

    test: str = "torch.npu.is_available()"


def npu_condition(seen: Seen, options: Conditions) -> Iterator[Proposal]:
    """What decides between an NPU and the CPU, and is no question for NPUs."""
    for code in seen.sources.every():
        for node in ast.walk(code.tree):
            test = None
            if isinstance(node, ast.IfExp) and _is_npu(node.body) and _is_cpu(node.orelse):
                test = node.test
            elif isinstance(node, ast.If) and any(map(_moves_to_npu, node.body)):
                test = node.test
            if test is None:
                continue
            for asked, line in _questions(code, test, seen):
                said = _("{asked} decides, and is false on an NPU", asked=code.segment(asked))
                edits = (code.replaced(asked, options.test), *code.import_of_torch())
                yield Proposal(code, asked, edits, said, line)


def _is_npu(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Constant) and str(one.value).startswith("npu") for one in ast.walk(node))


def _is_cpu(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Constant) and one.value == "cpu" for one in ast.walk(node))


def _moves_to_npu(statement: ast.stmt) -> bool:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "npu" or (node.func.attr == "to" and any(map(_is_npu, node.args))):
                return True
        if isinstance(node, (ast.Assign, ast.Return)) and node.value is not None:
            value: ast.AST = node.value
            if isinstance(value, ast.Constant) and _is_npu(value):
                return True
            if isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "device" and _is_npu(value):
                return True
    return False


def _questions(code: Code, test: ast.expr, seen: Seen) -> Iterator[tuple[ast.expr, str]]:
    """The parts of a condition that ask a function or the system, and a flag's own value."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    for part in parts:
        text = code.segment(part)
        if "npu" in text:
            continue
        if any(isinstance(node, ast.Call) for node in ast.walk(part)) or isinstance(part, ast.Compare):
            yield part, _definition(part, seen)
        elif isinstance(part, (ast.Name, ast.Attribute)):
            name = bare_name(part)
            for each in ast.walk(code.tree):
                if isinstance(each, ast.Assign) and any(bare_name(target) == name for target in each.targets):
                    made = code.segment(each.value)
                    if "npu" not in made and isinstance(each.value, (ast.Call, ast.Compare, ast.BoolOp)):
                        if "args" not in made:
                            yield each.value, code.place(each)


def _definition(part: ast.expr, seen: Seen) -> str:
    names = {called_name(node) for node in ast.walk(part) if isinstance(node, ast.Call)}
    for code, function in seen.sources.functions(names):
        returned = [one for one in ast.walk(function) if isinstance(one, ast.Return)]
        return code.place(returned[-1] if returned else function)
    return ""
