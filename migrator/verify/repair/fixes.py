"""Runtime rules (``rules/runtime``, docs/repair.md), and their fixes: changes for what a run showed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from inspect import signature
from pathlib import Path
from typing import Any, Literal

from migrator.data_folders import data_folder
from migrator.files.discover import discover
from migrator.files.source import text_below
from migrator.findings.finding import Edit
from migrator.language import _, did_you_mean
from migrator.light import Frozen
from migrator.matchers.argument_edits import added_argument, without_arguments
from migrator.matchers.context import instead_of
from migrator.matchers.npu_import import statement_separator
from migrator.matchers.options import SAID, OptionError, typed
from migrator.matchers.packs import RuleError, entries_of
from migrator.names.tree import argument_of, called_name, string_value
from migrator.verify.diagnosis import Failure
from migrator.verify.observed import Place
from migrator.verify.repair.site import Code, Origin, Proposal, Seen, Site

Texts = Mapping[str, str]


# -- names and arguments of CUDA -------------------------------------------------------


def _rename(site: Site, values: Texts, calls: Sequence[str], namespaces: Texts) -> Iterator[Proposal]:
    """A string or device with one of ``values`` in it, or a module: where it was made, or where it is used.

    Or what one of ``calls`` is given that is only computed there.
    """
    for node, value in site.values("str", "device", "namespace"):
        if isinstance(getattr(node, "ctx", None), ast.Store):
            continue
        kind, made = value["kind"], site.origin(node, value["value"])
        is_module = kind == "namespace"
        known = namespaces if is_module else values
        found = value["value"]
        old = next((old for old in known if old == found or (not is_module and old in found)), "")
        for code, where in dict.fromkeys((made, (site.code, node))) if old else ():
            text, new = code.segment(where), known[old]
            if not isinstance(where, ast.Constant):
                text = new if is_module else _with(text, [(old, new)])
                text = f"torch.device({text})" if kind == "device" else text
            elif not is_module:
                text = text.replace(old, new)
            yield Proposal(code, where, [instead_of(code, where, text)], _was(node, value), made.line)
    for there in ast.walk(site.expression):  # a string that is written there itself
        text = string_value(there) or ""
        for old, new in values.items():
            if isinstance(there, ast.Constant) and re.match(rf"(?:torch\.)?{old}\b", text):
                edit = instead_of(site.code, there, site.code.segment(there).replace(old, new))
                yield site.proposal(there, [edit], _("it is {value!r}", value=text))
    # What is computed where it is used: its value was not seen, but the failure tells that it is of CUDA.
    seen_there = {id(node) for node, _ in site.values()}
    for call in site.calls(*calls):
        for node in (*call.args[:1], *(k.value for k in call.keywords if k.arg in ("device", "backend"))):
            if id(node) not in seen_there and isinstance(node, (ast.Call, ast.BinOp, ast.JoinedStr)):
                said = _("{call} is given {node}", call=called_name(call), node=ast.unparse(node))
                yield _asked(site.code, node, values, said)


def _default_device(seen: Seen, values: Texts, calls: Sequence[str]) -> Iterator[Proposal]:
    """What chose the device of all that is made without one: it is not on the way to the failure."""
    for code in seen.every():
        for call in (node for node in ast.walk(code.tree) if isinstance(node, ast.Call)):
            names = (*calls, "device") if isinstance(code.parent(call), ast.withitem) else calls
            node = argument_of(call, "device", 0) if called_name(call) in names else None
            if node is not None and string_value(node) is None:
                said = _("{call} is given {node}", call=called_name(call), node=ast.unparse(node))
                yield _asked(code, node, values, said, seen.origin(Origin(code, node)).line)


def _other_key(site: Site, values: Texts) -> Iterator[Proposal]:
    """A table is asked for another key where it is looked up: the value itself goes to other places, too."""
    for node, value in site.values("str"):
        is_key = getattr(site.code.parent(node), "slice", None) is node
        if is_key and any(old in value["value"] for old in values):
            yield _asked(site.code, node, values, _was(node, value))


def _with(source: str, pairs: Iterable[tuple[str, str]]) -> str:
    return f"str({source})" + "".join(f'.replace("{old}", "{new}")' for old, new in pairs)


def _asked(code: Code, node: ast.expr, values: Texts, said: str, origin: str = "") -> Proposal:
    """A value that is not written there is changed where it is used."""
    edit = instead_of(code, node, _with(code.segment(node), values.items()))
    return Proposal(code, node, [edit], said, origin)


def _was(node: ast.expr, value: Mapping[str, Any]) -> str:
    return f"{ast.unparse(node)} was {value.get('value', value['kind'])!r}"


def _without_argument(site: Site, name: str) -> Iterator[Proposal]:
    given = ((call, one) for call in site.calls() for one in call.keywords if one.arg == name)
    for call, keyword in given:
        edits = without_arguments(site.code, call, [keyword])
        if len(call.keywords) + len(call.args) == 1 and isinstance(call.func, ast.Attribute):
            edits = [instead_of(site.code, call, site.code.segment(call.func.value))]
        said = [_was(node, value) for node, value in site.values() if node is keyword.value]
        said += [_("{name} is given", name=name)]
        if edits:
            yield site.proposal(call, edits, said[0], keyword.value)


def _with_argument(site: Site, calls: Sequence[str], name: str, value: str) -> Iterator[Proposal]:
    for call in site.calls(*calls):
        given = {one.arg for one in call.keywords}
        if (given or call.args) and name not in given:
            said = _("{call} is not given {name}", call=called_name(call), name=name)
            yield site.proposal(call, added_argument(site.code, call, name, value), said)
    # torch.load under another name, such as that of a partial: its value was seen.
    for call in site.calls():
        if isinstance(call.func, ast.Name) and call.args:
            code, node = site.origin(call.func)
            if node is not call.func and any(name in code.segment(node) for name in calls):
                edits = added_argument(site.code, call, name, value)
                yield site.proposal(call, edits, _("{id} loads", id=call.func.id), call.func)


def _instead_of_none(site: Site, values: Texts) -> Iterator[Proposal]:
    nodes = [node for node, _ in site.values("NoneType") if not isinstance(node, ast.Constant)]
    nodes += site.calls()
    if isinstance(site.statement, ast.Assign):  # what it unpacks
        nodes.append(site.statement.value)
    for node in (each for each in dict.fromkeys(nodes) if not isinstance(each, ast.BoolOp)):
        source, made = site.code.segment(node), site.origin(node)
        bodies = (code.segment(each) for code, each in site.seen.functions(node, made.node))
        texts = [source, made.code.segment(made.node), *bodies]
        fitting = (v for pattern, v in values.items() if any(re.search(pattern, t) for t in texts))
        for value in [*fitting][:1]:
            edit = instead_of(site.code, node, f"({source} or {value})")
            yield site.proposal(node, [edit], _("{node} is None", node=ast.unparse(node)), node)


def _other_name(site: Site, names: Texts, otherwise: str) -> Iterator[Proposal]:
    failure = site.seen.failure
    match = re.search(r"has no attribute '(\w+)'", failure.text if failure else "")
    if match is None or site.frame is not site.seen.sites()[0].frame:
        return
    name, new = match[1], names.get(match[1], otherwise)
    for node in ast.walk(site.expression):
        if isinstance(node, ast.Attribute) and node.attr == name and name in names:
            yield site.proposal(node, [instead_of(site.code, node, new)], _("there is no {name}", name=name))
        if isinstance(node, ast.Call) and called_name(node) == "getattr" and len(node.args) == 2 and new:
            said = _("getattr asks for {name!r}", name=name)
            yield site.proposal(node, [site.code.added(node.args[1], f", {new}")], said, node.args[1])


# -- values on the wrong device --------------------------------------------------------

_Operands = list[tuple[ast.expr, Mapping[str, Any]]]


def _same_device(site: Site) -> Iterator[Proposal]:
    """The operands on the CPU go to the device of one on an NPU; what is changed in place stays."""
    cpu, npu = _operands(site)
    staying = [node for node, _ in cpu if npu and _is_changed(site.code, node)]
    home, moving = [node for node, _ in npu][:1], cpu
    if staying:
        home, moving = staying, [each for each in npu if not _is_changed(site.code, each[0])]
    device = f"{site.code.segment(home[0])}.device" if home else '"npu"'
    edits = [_moved(site.code, node, value, device) for node, value in moving]
    if cpu and edits:
        node = staying[0] if staying else cpu[0][0]
        yield site.proposal(node, edits, _what_is_where(node, cpu[0][1]), node)


def _what_is_where(node: ast.expr, value: Mapping[str, Any]) -> str:
    if value.get("device") == "npu":
        return _("{node} is on an NPU", node=ast.unparse(node))
    shape = "×".join(map(str, value.get("shape", ()))) or value.get("class", value["kind"])
    what = f"{value.get('dtype', '')} {shape}".strip()
    return _("{node} is on the CPU ({what})", node=ast.unparse(node), what=what)


def _operands(site: Site) -> tuple[_Operands, _Operands]:
    """The expressions with tensors on the CPU, and those with some on an NPU; none inside another one."""
    found: dict[str, _Operands] = {"cpu": [], "npu": []}
    taken: set[int] = set()
    for node, value in site.values("tensor", "module", "list", "tuple", "dict"):
        kind = value["kind"]
        devices = [value["device"]] if kind == "tensor" else list(value.get("devices", ()))
        is_number = kind == "tensor" and not value["shape"] and devices == ["cpu"]
        one_is_taken = kind in ("list", "tuple", "dict") and isinstance(site.code.parent(node), ast.Subscript)
        if id(node) in taken or _is_part(site, node) or is_number or one_is_taken:
            continue
        if "cpu" in devices or ("npu" in devices and kind == "tensor"):
            found["cpu" if "cpu" in devices else "npu"].append((node, value))
            taken |= {id(child) for child in ast.walk(node)}
    return found["cpu"], found["npu"]


def _is_part(site: Site, node: ast.expr) -> bool:
    """Whether only an attribute of a value is asked for, such as ``x.shape``: it takes no part itself."""
    up = site.code.parent(node)
    return isinstance(up, ast.Attribute) and site.code.call_of(up) is None


def _is_changed(code: Code, node: ast.expr) -> bool:
    """Whether an operand is changed in place: ``x.add_(y)``, ``x += y``."""
    up = code.parent(node)
    if isinstance(up, ast.AugAssign) and up.target is node:
        return True
    while isinstance(up, ast.Attribute) and (call := code.call_of(up)) is not None:
        if up.attr.endswith("_") and not up.attr.startswith("_"):
            return True
        up = code.parent(call)
    return False


def _moved(code: Code, node: ast.expr, value: Mapping[str, Any], device: str) -> Edit:
    source = code.segment(node)
    if value["kind"] in ("list", "tuple"):
        return instead_of(code, node, f"[each.to({device}) for each in {source}]")
    if value["kind"] == "dict":
        return instead_of(code, node, f"{{key: each.to({device}) for key, each in {source}.items()}}")
    return code.added(node, f".to({device})")


def _behind(
    site: Site, kind: str, value: str, device: str = "", classes: Sequence[str] = (), within: str = ""
) -> Iterator[Proposal]:
    """A text behind a value on a device, or of some classes, in an ``if`` whose condition fits ``within``."""
    ifs = (each for each in site.code.above(site.statement) if isinstance(each, ast.If))
    if within and not any(re.search(within, site.code.segment(each.test)) for each in ifs):
        return
    for node, found in site.values(kind):
        fits = device in (found.get("device"), *found.get("devices", ())) or found.get("class") in classes
        if fits and not _is_part(site, node):
            said = _what_is_where(node, found) if device else _was(node, found)
            yield site.proposal(node, [site.code.added(node, value)], said, node)


def _converted(site: Site, there: str, back: str, dtype: str = "") -> Iterator[Proposal]:
    """What NPUs refuse: ``there`` behind its operands (of ``dtype``s, and its module), ``back`` behind it."""
    product = isinstance(site.expression, ast.BinOp)  # what is called in it did not fail
    outer = site.expression if product else next(iter(site.calls()), site.expression)
    values = ((node, [value["device"], value["dtype"]]) for node, value in site.values("tensor"))
    tensors = [node for node, (on, of) in values if on == "npu" and of in (dtype.split() or [of])]
    modules = [node for node, _ in site.values("module") if node is getattr(outer, "func", None)]
    if isinstance(outer, ast.expr) and tensors and (dtype or not modules):
        inside = {id(child) for node in tensors for child in ast.walk(node) if child is not node}
        edits = [site.code.added(each, there) for each in (*modules, *tensors) if id(each) not in inside]
        opening, closing = ("", "") if isinstance(outer, ast.Call) else ("(", ")")
        edits.append(site.code.added(outer, closing + back.format(site.code.segment(tensors[0]))))
        edits += [Edit(site.code.start(outer), site.code.start(outer), opening)] if opening else []
        yield site.proposal(outer, edits, _("{tensors} is on an NPU", tensors=ast.unparse(tensors[0])))


def guards(code: Code) -> Iterator[tuple[list[ast.expr], ast.AST]]:
    """The conditions that choose between an NPU and the CPU, by parts, and what is evaluated on an NPU."""
    for node in ast.walk(code.tree) if "npu" in code.text else ():
        chosen: list[ast.AST] = []
        if isinstance(node, ast.IfExp) and _names(node.body, "npu") and _names(node.orelse, "cpu"):
            chosen = [node.body]
        elif isinstance(node, ast.If) and any(map(_moves_to_npu, node.body)):
            chosen = [each for each in ast.walk(node.body[0]) if isinstance(each, ast.expr)]
        if isinstance(node, (ast.If, ast.IfExp)) and chosen:
            test, parts = node.test, [node.test]
            if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
                parts = test.values
            yield parts, chosen[0]


def watched(folder: Path) -> list[Place]:
    """What a run has to be watched for: these conditions, and whether the program took the NPU."""
    python = (entry for entry in discover(folder) if entry.kind == "python")
    files = [str(entry.path) for entry in python if "npu" in (text_below(folder, entry.name) or "")]
    seen = [(code, guard) for code in Seen(folder, files=files).every() for guard in guards(code)]
    nodes = ((code, node) for code, (parts, chosen) in seen for node in (parts[0], chosen))
    return [Place(code.name, *code.spot(node), "guard", "") for code, node in nodes]


def _npu_condition(seen: Seen, about: str) -> Iterator[Proposal]:
    """What decides between an NPU and the CPU by a question ``about`` CUDA, and took the CPU."""
    for code in seen.every():
        for parts, chosen in guards(code):
            took_cpu = code.spot(parts[0]) in seen.evaluated and code.spot(chosen) not in seen.evaluated
            for here in [Origin(code, part) for part in parts] if took_cpu else ():
                for question in dict.fromkeys((seen.origin(here), here)):  # the earliest cause first
                    there, node = question
                    # It is about CUDA by its words, or those of what it calls.
                    bodies = (each.body[bool(ast.get_docstring(each)) :] for _, each in seen.functions(node))
                    texts = [there.segment(node), *(ast.unparse(line) for body in bodies for line in body)]
                    asks = isinstance(node, (ast.Call, ast.Compare, ast.BoolOp))
                    asks = asks and not re.search(r"npu|args|(?<!environ)\.get\(", texts[0])
                    if asks and any(re.search(about, text) for text in texts):
                        said = _("{asked} decides, and is false on an NPU", asked=there.segment(node))
                        edit = instead_of(there, node, "torch.npu.is_available()")
                        yield Proposal(there, node, [edit, *there.import_of_torch()], said, question.line)


def _names(node: ast.AST, device: str) -> bool:
    return any(str(one.value).startswith(device) for one in ast.walk(node) if isinstance(one, ast.Constant))


def _moves_to_npu(statement: ast.stmt) -> bool:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            given = node.args if node.func.attr == "to" else ()
            if node.func.attr == "npu" or any(_names(each, "npu") for each in given):
                return True
        value = node.value if isinstance(node, (ast.Assign, ast.Return)) else None
        if value is not None and (isinstance(value, ast.Constant) or called_name(value) == "device"):
            return _names(value, "npu")
    return False


# -- several ranks ---------------------------------------------------------------------


def _copied_collective(site: Site, calls: Sequence[str], dtypes: Texts) -> Iterator[Proposal]:
    """A collective on a copy of another type, the result of which is copied back: the tensor stays itself."""
    code, statement = site.code, site.statement
    call = next((each for each in site.calls(*calls) if each.args), None)
    if call is None or not isinstance(statement, ast.Expr) or statement.value is not call:
        return
    dtype = next((value["dtype"] for node, value in site.values("tensor") if node is call.args[0]), "")
    if dtype in dtypes:
        begin, next_line, tensor = code.start(statement), statement_separator(code, statement), call.args[0]
        name = code.segment(tensor)
        copied = Edit(begin, begin, f"reduced = {name}.{dtypes[dtype]}(){next_line}")
        back = code.added(statement, f"{next_line}{name}.copy_(reduced)")
        edits = [copied, instead_of(code, tensor, "reduced"), back]
        yield site.proposal(statement, edits, f"{name} is {dtype}", tensor)


def _npu_of_rank(seen: Seen) -> Iterator[Proposal]:
    """Each rank takes the NPU of its own number, right after the group is there, or where it takes one."""
    chosen = "torch.npu.set_device(torch.distributed.get_rank() % torch.npu.device_count())"
    late = []
    for code, node in ((each, node) for each in seen.every() for node in ast.walk(each.tree)):
        joins = isinstance(node, ast.Expr) and called_name(node.value) == "init_process_group"
        if isinstance(node, ast.Expr) and joins:
            edits = [code.added(node, statement_separator(code, node) + chosen), *code.import_of_torch()]
            yield Proposal(code, node, edits, _("no rank has selected its NPU before the first collective"))
        if isinstance(node, ast.Call) and called_name(node) == "set_device" and len(node.args) == 1:
            edit = instead_of(code, node.args[0], 'int(__import__("os").environ["LOCAL_RANK"])')
            said = _("set_device is given {args}", args=code.segment(node.args[0]))
            late.append(Proposal(code, node, [edit], said))
    yield from late


def _all_ranks(seen: Seen) -> Iterator[Proposal]:
    """A collective that is called by some ranks only, at the end of an ``if``: behind it, where all come."""
    for who, frame in seen.waiting():
        code = seen.code(frame.file)
        for node in ast.walk(code.tree) if code else ():
            if code is None or not isinstance(node, ast.If) or node.orelse or len(node.body) < 2:
                continue
            last = node.body[-1]
            asks_rank = "rank" in code.segment(node.test).lower()
            if last.lineno == frame.line and isinstance(last, ast.Expr) and asks_rank:
                before = code.lines.beside(code.span(node))[0].decode("utf-8")
                edit = Edit(code.lines.starts[last.lineno - 1], code.start(last), before)
                said = _("{who} waits in it, and the other ranks never call it", who=who)
                yield Proposal(code, last, [edit], said, code.place(node))


# By their names in rules/runtime; a rule's options are the fix's own parameters, behind the first one.
FIXES: dict[str, Callable[..., Iterator[Proposal]]] = {
    fix.__name__.strip("_").replace("_", "-"): fix
    for fix in (
        *(_rename, _default_device, _without_argument, _with_argument, _instead_of_none, _other_name),
        *(_converted, _same_device, _other_key, _behind, _npu_condition),
        *(_copied_collective, _npu_of_rank, _all_ranks),
    )
}


def proposals(rule: RuntimeRule, seen: Seen) -> Iterator[Proposal]:
    """The changes that a rule has for what was seen: of each call on the way to a failure, or of the run."""
    fix = FIXES[rule.fix]
    of_sites = "site" in signature(fix).parameters
    for each in seen.sites() if of_sites else [seen]:
        yield from fix(each, **rule.options)


# -- the rules -------------------------------------------------------------------------

_EXAMPLE = ("before", "after", "unchanged", "at", "failure", "text", "values", "use", "more")


class Signs(Frozen):
    """What a rule goes by; all that is given has to hold.

    ``run``: how the run went. ``kinds``: the exception or what it derives from; ``text``: a regular
    expression for its message; ``calls``: functions of which one was called on the way to it.
    """

    run: Literal["failure", "lost", "cpu", "waits"] = "failure"
    kinds: tuple[str, ...] = ()
    text: str = ""
    calls: tuple[str, ...] = ()

    def fit(self, failure: Failure) -> bool:
        """Whether a failure shows them."""
        return (
            (not self.kinds or not set(self.kinds).isdisjoint(failure.kinds))
            and (not self.text or bool(re.search(self.text, failure.text, re.S)))
            and (not self.calls or any(frame.function in self.calls for frame in failure.frames))
        )


class RuntimeRule(Frozen):
    """One runtime rule, as docs/repair.md describes it."""

    code: str = field(metadata={"required": True})
    name: str = field(metadata={"required": True})
    summary: str = field(metadata={"required": True, **SAID})
    signs: Signs = field(metadata={"required": True})
    fix: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    message: str = field(default="", metadata=SAID)
    advice: str = field(default="", metadata=SAID)
    why: str = field(default="", metadata=SAID)
    examples: tuple[dict[str, Any], ...] = ()


def load(path: Path) -> list[RuntimeRule]:
    """The rules of one file. Raises RuleError, with file, line and what is wrong."""
    found = []
    for entry, node in entries_of(path):
        try:
            found.append(_rule(entry))
        except (OptionError, re.error) as error:
            raise RuleError(f"{path}:{node.start_mark.line + 1}: {error}") from None
    return found


def _rule(entry: Any) -> RuntimeRule:
    rule = typed(RuntimeRule, entry)
    re.compile(rule.signs.text)
    fix, options = rule.fix, rule.options
    if fix and fix not in FIXES:
        known = ", ".join(FIXES)
        raise OptionError("fix", _("unknown fix {fix!r}; there are {fixes}", fix=fix, fixes=known))
    if options and not fix:
        raise OptionError("options", _("a rule without a fix has no options"))
    taken = [*signature(FIXES[fix]).parameters][1:] if fix else []
    examples = ((name, _EXAMPLE) for each in rule.examples for name in each)
    for name, names in (*((name, taken) for name in options), *examples):
        if name not in names:
            meant = did_you_mean(name, names)
            raise OptionError(name, _("unknown option {name!r}{name2}", name=name, name2=meant))
    return rule


def load_all() -> list[RuntimeRule]:
    """All runtime rules, in the order of their codes, which is that in which they are tried."""
    rules = [rule for path in sorted(data_folder("rules").glob("runtime/*.yaml")) for rule in load(path)]
    return sorted(rules, key=lambda rule: rule.code)
