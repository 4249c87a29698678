"""What a rank does as the others do, or by itself: its device, the ways it takes, what it reports."""

from __future__ import annotations

import ast
import re

from migrator.convert.distributed.batches import is_step
from migrator.convert.distributed.training import Training, feeds, guards
from migrator.convert.draft import Draft, UncertainError
from migrator.convert.models import Wrapped
from migrator.convert.program import (
    LOOPS,
    Loop,
    Program,
    base_name,
    below,
    calls_in,
    constant,
    dotted,
    is_stored,
    method_name,
    names_set,
)
from migrator.language import N_, _
from migrator.matchers.context import put_around
from migrator.names.tree import argument_of, arguments_of, string_value

_NUMBERED = re.compile(r"cuda:(\d+)$")
_LOCAL_RANK = 'int(os.environ.get("LOCAL_RANK", 0))'
_OWN_DEVICE = N_("one device for each rank")


# -- one device for each rank: places that name a device's number mean the rank's own device instead -------


def use_own_device(draft: Draft) -> None:
    """Plan it for the whole program. Raises UncertainError where it uses several devices."""
    program, numbers = draft.program, dict[str, ast.AST]()
    for assign in program.nodes(ast.Assign):
        target = assign.targets[0]
        if isinstance(target, ast.Subscript) and "CUDA_VISIBLE_DEVICES" in ast.dump(target.slice):
            if program.name(target.value) == "os.environ":
                if program.is_alone(assign) or not program.own_line(assign):
                    raise UncertainError("visible_devices", assign)
                draft.remove(assign, _("the launcher chooses the devices (--devices)"))
    for node in program.nodes(ast.expr):
        if isinstance(node, ast.Call):
            number = _device_of_call(draft, node)
        else:
            inside = isinstance(program.parent(node), (ast.JoinedStr, ast.FormattedValue, ast.Expr))
            number = "" if inside else _number(program, node)
            if number:
                draft.replace(node, '"cuda"', _(_OWN_DEVICE))
        numbers.setdefault(number, node)
    numbers.pop("", None)
    if len(numbers) > 1:
        raise UncertainError("several_devices", list(numbers.values())[1])


def _number(program: Program, node: ast.expr) -> str:
    """The number in ``"cuda:0"``, ``f"cuda:{gpu}"``, ``"cuda:%d" % gpu`` and ``"cuda:" + str(gpu)``."""
    match = _NUMBERED.match(string_value(node) or "")
    if match:
        return match.group(1)
    if isinstance(node, ast.JoinedStr) and len(node.values) == 2:
        before, value = node.values
        if constant(before) == "cuda:" and isinstance(value, ast.FormattedValue):
            return program.segment(value.value) or "?"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return program.segment(node.right) if constant(node.left) in ("cuda:%d", "cuda:%s") else ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and constant(node.left) == "cuda:":
        return program.segment(node.right).removeprefix("str(").rstrip(")")
    return ""


def _device_of_call(draft: Draft, node: ast.Call) -> str:
    """Plan it for a call that chooses a device, or moves something to one; gives the number, as written."""
    program, name, given = draft.program, draft.program.name(node), arguments_of(node)
    moves = method_name(node) if name != "torch.cuda" else ""
    named = next((place for place, one in enumerate(node.keywords) if one.arg == "device"), -1)
    place = 0 if node.args else named
    number = ""
    if name in ("torch.cuda.set_device", "torch.cuda.device") and len(given) == 1:
        number = program.segment(given[0])
        if number == _LOCAL_RANK:
            return ""
        draft.replace(given[0], _LOCAL_RANK)
        number = "" if _holds_string(given[0]) or dotted(given[0]).endswith("device") else number
    elif name == "torch.device" and len(given) == 2 and constant(given[0]) == "cuda":
        draft.change_arguments(node, [1], [])
        number = program.segment(given[1])
    elif moves == "cuda" and place >= 0 and not _holds_string(given[place]):
        draft.change_arguments(node, [place], [])
        number = program.segment(given[place]) if isinstance(given[place], ast.Constant) else ""
    elif moves in ("cuda", "to") and place >= 0 and type(constant(given[place])) is int:
        draft.replace(given[place], '"cuda"')
        number = program.segment(given[place])
    else:
        return ""
    draft.changed(node, _(_OWN_DEVICE))
    return number


def _holds_string(node: ast.AST) -> bool:
    return any(isinstance(one, ast.JoinedStr) or string_value(one) is not None for one in ast.walk(node))


# -- gradient accumulation: the ranks exchange gradients only in the step that uses them -------------------


def accumulate_without_sync(draft: Draft, training: Training, models: list[Wrapped]) -> None:
    """Plan ``no_sync()`` around forward and backward where ``optimizer.step()`` has a plain condition.

    Where it is not plain nothing changes: the result is the same, with more exchanges.
    """
    program, body, home = draft.program, training.batches.body, models[0].home
    stepping = [number for number, one in enumerate(body) if any(map(is_step, ast.walk(one)))]
    holding = [number for number, one in enumerate(body) if training.backward in below(one)]
    if len(stepping) != 1 or len(holding) != 1:
        return
    step, end = stepping[0], holding[0]
    condition = body[step]
    if not isinstance(condition, ast.If) or condition.orelse or "Mod()" not in ast.dump(condition.test):
        return
    called = [{dotted(call.func) for call in calls_in(one)} for one in body[: end + 1]]
    first = next((number for number, names in enumerate(called) if home.text in names), step)
    test, between = program.segment(condition.test), body[first:step]
    asked = {dotted(node) for node in ast.walk(condition.test) if isinstance(node, ast.Name)}
    here = program.file(home.scope) is program.file(condition)
    plain = between and len(models) == 1 and step > end and here and not names_set(*between) & asked
    strings = (node for one in between for node in ast.walk(one) if string_value(node) is not None)
    is_long = any(node.end_lineno != node.lineno for node in strings if isinstance(node, ast.Constant))
    if not plain or is_long or not all(map(program.own_line, between)):
        advice = f"with contextlib.nullcontext() if {test} else {home.text}.no_sync():"
        draft.report("exchanged_every_step", training.backward, advice=advice)
        return
    head = f"with contextlib.nullcontext() if {' '.join(test.split())} else {home.text}.no_sync():"
    draft.indent(between[0], body[end], head, _("gradients are exchanged in the step that applies them"))


# -- the ranks leave a loop, and skip a batch, together: where a condition may differ, they agree -----


def leave_together(draft: Draft, found: list[Training]) -> None:
    """Plan it for what leaves the loops over epochs and over batches, and skips a batch."""
    program = draft.program
    for training in found:
        loop = training.batches
        of_batches = feeds(program, training)
        _agree(draft, [test for test in _tests(program, loop) if of_batches(test)])
        around = [one for one in guards(program, training.backward, loop) if of_batches(one[0])]
        _agree(draft, [test for test, wanted in around if not wanted])
        _agree(draft, [test for test, wanted in around if wanted], "not ")
        if training.epochs:
            changing = _changing(program, training.epochs.loop)
            every = _tests(program, training.epochs.loop)
            tests = [test for test in every if changing & set(map(base_name, ast.walk(test)))]
            _agree(draft, tests)
            lines = "\n".join(draft.of(loop).after.get(loop, [])).split("\n")
            reduced = {line.strip().partition(" = sum_over_ranks")[0] for line in lines}
            own = feeds(program, training, reduced)
            for name in dict.fromkeys(dotted(node) for node in below(*tests) if own(node)):
                if name:
                    draft.report("own_share", training.batches, name=name)


def _agree(draft: Draft, tests: list[ast.expr], before: str = "") -> None:
    """Plan it for conditions that have to hold on one rank, or, with "not " before them, on all."""
    for test in tests:
        changes, file = draft.of(test), draft.program.file(test)
        head, tail = f"{before}on_any_rank({before}", ")"
        if before and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, head = test.operand, "on_any_rank("
        elif before:
            head, tail = f"{head}(", "))"
        start = file.start(test)
        if any(edit.start == start and "on_any_rank" in edit.text for edit in changes.edits):
            continue
        changes.edits += put_around(file, test, head, tail)
        draft.use(test, "on_any_rank()")
        draft.changed(test, _("all ranks take the same branch"))


def _tests(program: Program, loop: Loop) -> list[ast.expr]:
    """The conditions by which a loop is left, or the rest of a round is."""
    scope = program.scope_of(loop)
    found = [loop.test] if isinstance(loop, ast.While) else []
    for node in below(*loop.body):
        leaving = isinstance(node, (ast.Break, ast.Continue, ast.Return))
        if not leaving or program.scope_of(node) is not scope:
            continue
        around = [up for _, up in program.above(node)]
        inner = next(up for up in around if isinstance(up, (*LOOPS, ast.AsyncFor)))
        if inner is loop or isinstance(node, ast.Return):
            found += [up.test for up in around[: around.index(loop)] if isinstance(up, ast.If)]
    return list(dict.fromkeys(found))


def _changing(program: Program, loop: Loop) -> set[str]:
    """The names that a loop sets, counters aside, and what it calls: they may differ between ranks."""
    counters = below(loop.target) if isinstance(loop, ast.For) else set()
    found = set()
    for node in below(*loop.body):
        if isinstance(node, ast.Call):
            found.add(base_name(node.func))
        elif is_stored(node) and node not in counters:
            up = program.parent(node)
            if not (isinstance(up, ast.AugAssign) and isinstance(up.value, ast.Constant) and up in loop.body):
                found.add(base_name(node))
    return found - {""}


# -- what may differ between the ranks and is nowhere placed: it is reported, with the lines to write --------


def report_differences(draft: Draft, found: list[Training]) -> None:
    """Add it to the draft."""
    program = draft.program
    texts = " ".join(file.text for file in program.files.values())
    seeded = re.search(r"\bmanual_seed\(|\bseed_everything\(|\brandom_state\s*=", texts)
    epochs = [one.epochs.loop for one in found if one.epochs]
    for call in program.nodes(ast.Call):
        name = program.name(call)
        last = (name or dotted(call.func)).split(".")[-1] or method_name(call)
        loads = name == "torch.load"
        modes = map(constant, [*call.args[1:2], argument_of(call, "mode")])
        reasons = {
            "scheduler_metric": last == "ReduceLROnPlateau",
            "random_split": last == "random_split" and not seeded and not argument_of(call, "generator"),
            "own_logs": last == "SummaryWriter" or name == "wandb.init",
            "opened_by_every_rank": last == "open" and any(set("wax+") & set(str(mode)) for mode in modes),
            "read_after_training": loads
            and any(
                call.lineno > (loop.end_lineno or 0) and program.scope_of(call) is program.scope_of(loop)
                for loop in epochs
            ),
            "map_location": loads and not argument_of(call, "map_location"),
            "download": constant(argument_of(call, "download")) is True,
            "folder": name in ("os.mkdir", "os.makedirs")
            and not argument_of(call, "exist_ok")
            and not _may_exist(draft, call),
        }
        for key in [key for key, holds in reasons.items() if holds][:1]:
            draft.report(key, call)
    for training in found:
        # A loss that means something else where each rank has a part of the batch.
        for node in program.nodes(ast.Call, ast.BinOp):
            owner = next((up.name for _, up in program.above(node) if isinstance(up, ast.ClassDef)), "")
            if node not in training.inside and "loss" not in owner.lower():
                continue
            if isinstance(node, ast.Call) and constant(argument_of(node, "reduction")) == "sum":
                draft.report("summed_loss", node)
            elif _compares_within(program, node):
                draft.report("within_batch", node)


def _may_exist(draft: Draft, call: ast.Call) -> bool:
    """Plan that a folder may be there already: another rank makes it, too. False where that is not plain."""
    if len(call.args) != 1 or call.keywords or not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "mkdir":
        draft.replace(call.func, f"{draft.program.segment(call.func.value)}.makedirs")
    draft.change_arguments(call, [], ["exist_ok=True"])
    draft.changed(call, _("another rank may have created the folder"))
    return True


def _compares_within(program: Program, node: ast.expr) -> bool:
    """Whether a node multiplies a matrix by itself, transposed: ``features @ features.T``."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call) and program.name(node) in ("torch.matmul", "torch.mm"):
        sides = node.args[:2]
    if len(sides) != 2 or not dotted(sides[0]):
        return False
    other = sides[1].func if isinstance(sides[1], ast.Call) else sides[1]
    return isinstance(other, ast.Attribute) and other.attr in ("T", "mT", "t") and dotted(other.value) != ""
