"""A program for one device becomes one for many: every change, and what there is to report of it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import field
from pathlib import Path

from migrator.convert.distributed.batches import counts
from migrator.convert.distributed.metrics import average_in_closures, reduce_metrics
from migrator.convert.distributed.models import (
    models_to_wrap,
    parallels,
    prefixed,
    replace_parallel,
    take_its_place,
    wraps,
)
from migrator.convert.distributed.ranks import (
    accumulate_without_sync,
    leave_together,
    report_differences,
    use_own_device,
)
from migrator.convert.distributed.samplers import check_batches, share_drawn, share_loader
from migrator.convert.distributed.training import Training, trainings
from migrator.convert.draft import Draft, UncertainError
from migrator.convert.models import Wrapped
from migrator.convert.program import (
    UNREADABLE,
    AlreadyDistributedError,
    Program,
    dotted,
    is_main_guard,
    load,
    method_name,
)
from migrator.convert.write import NotPlacedError
from migrator.core.check import Converted
from migrator.findings.finding import internal_error
from migrator.language import N_, _
from migrator.light import Frozen
from migrator.names.tree import bare_name
from migrator.project.definitions import Definitions
from migrator.project.frameworks import listed
from migrator.project.module_names import Read

_OWN_DEVICE = "[torch.cuda.current_device()] if torch.cuda.is_available() else None"


def convert(
    entry: str, read: Read, target: str = "", root: Path | None = None, others: Collection[str] = ()
) -> Conversion:
    """Convert the program that the file ``entry`` starts. All of it is converted, or nothing.

    ``read`` gives the text of a project's file by its path, None where there is none; ``target``
    is the model's name, where the user gives it. ``root`` is the project's folder: with it jedi follows names
    where their files alone say too little. ``others`` are the project's Python files. Nothing is raised for
    what the files hold.
    """
    try:
        return _converted(entry, read, target, root, others)
    except Exception as error:  # an internal error: the script stays unchanged
        files = {entry: Converted("", failed=internal_error(entry, error))}
        return Conversion(entry, files, reason=f"internal error: {error!r}")


def _converted(entry: str, read: Read, target: str, root: Path | None, others: Collection[str]) -> Conversion:
    try:
        folders = (root / Path(entry).parent,) if root else ()
        program = load(entry, read, Definitions(root, folders) if root else None)
    except AlreadyDistributedError:
        return Conversion(entry, already=True)
    except UNREADABLE:
        return Conversion(entry, reason="it cannot be parsed")
    try:
        draft = Draft(program)
        _plan(draft, read, target, others)
        return Conversion(entry, draft.converted())
    except UncertainError as error:
        problem = error
    except (NotPlacedError, SyntaxError) as error:
        problem = UncertainError("no_place", error=error)
    draft.give_up(problem)
    for key in ("ranks_meet", "model_to_wrap", "data_to_share", "files_to_write"):
        draft.report(key, program.entry.tree)
    return Conversion(entry, draft.converted(), reason=str(problem))


class Conversion(Frozen):
    """What became of a program. ``files`` are those that changed or of which there is something to say.

    ``reason`` says why it is not converted, empty where it is; ``already``: it was for many devices before.
    """

    entry: str
    files: dict[str, Converted] = field(default_factory=dict)
    reason: str = ""
    already: bool = False

    def line(self) -> str:
        """What the user reads of it."""
        if self.already:
            return _("{entry} is already distributed: only migrated", entry=self.entry)
        if self.reason:
            more = _("manual_review.csv lists the lines to write")
            if any(one.failed for one in self.files.values()):
                more = _("see npumigrate.log for details")
            stays = N_("{entry} still trains on one device: {reason} ({more})")
            return _(stays, entry=self.entry, reason=self.reason, more=more)
        changed = sum(bool(one.edits) for one in self.files.values())
        return _("{entry} trains on many NPUs; {n} files changed for that", entry=self.entry, n=changed)


# -- the plan -----------------------------------------------------------------------


def _plan(draft: Draft, read: Read, target: str, others: Collection[str]) -> None:
    """The changes that convert a program. ``target``: the name of the model, where it has to be given.

    ``others`` are the project's Python files, ``read`` gives their texts. Raises UncertainError where a
    change that is needed cannot be placed.
    """
    program = draft.program
    found = trainings(program)
    models = models_to_wrap(program, found, target)
    parallel = parallels(program)
    replace_parallel(draft, parallel)
    for model in models:
        own = [one for one in parallel if len(models) == 1 or wraps(program, one, model)]
        model.prefixed = prefixed(own, program, others, read)
        model.unless = frozenset(test for one in own for test in one.tests)
        for one in own[:1]:
            take_its_place(program, model, one)
        model.follow()
        _use_the_model_inside(draft, model)
        _wrap(draft, model, bool(own), model is models[0])
    check_batches(program, found, models)
    shared = set[ast.Call]()
    for loader in (one for training in found for one in training.loaders):
        if loader.call not in shared:
            shared.add(loader.call)
            share_loader(draft, loader, found)
    share_drawn(draft, found)
    use_own_device(draft)
    for training in found:
        _set_epoch(draft, training)
        accumulate_without_sync(draft, training, models)
    reduce_metrics(draft, found)
    average_in_closures(draft, found)
    leave_together(draft, found)
    _show_bars_once(draft)
    _rank_zero(draft)
    report_differences(draft, found)
    _set_up(draft, models)


def _where_distributed(draft: Draft, node: ast.AST, line: str) -> str:
    """A line for a node's file: other programs may import it, if it is not the entry."""
    if draft.program.file(node) is draft.program.entry:
        return line
    return f"if dist.is_initialized():\n    {line}"


def _use_the_model_inside(draft: Draft, wrapped: Wrapped) -> None:
    """Plan ``.module`` where the model itself is needed; report where that is not known."""
    segment = draft.program.segment
    for node, perhaps in wrapped.inner.items():
        text = segment(node)
        code = f'getattr({text}, "module", {text})' if perhaps else f"{text}.module"
        draft.replace(node, code, "the model inside of DistributedDataParallel")
    for bare in wrapped.bare:
        draft.replace(bare, segment(bare.value), "the model is not wrapped yet")
    for node in wrapped.unclear:
        draft.report("wrapped_here", node, text=dotted(node) or "what comes back")


def _wrap(draft: Draft, wrapped: Wrapped, parallel: bool, first: bool) -> None:
    home, behind = wrapped.home, wrapped.behind
    options = f", device_ids={_OWN_DEVICE}" if parallel else ""
    if len(wrapped.calls) > 1:  # a later call must not write the buffers with which an earlier one computed
        options += ", broadcast_buffers=False"
    if wrapped.in_part:  # the others may get no gradient
        options += ", find_unused_parameters=True"
    line = f"{home.text} = DistributedDataParallel({home.text}{options})"
    line = _where_distributed(draft, behind, line)
    draft.insert("after", behind, [line], "the model is wrapped: gradients are averaged over the ranks")
    named = map(bare_name, draft.program.nodes(ast.Name, ast.Attribute))
    if first and any("BatchNorm" in name for name in named):
        draft.report("batch_norm", behind, home=home)


def _set_epoch(draft: Draft, training: Training) -> None:
    epochs, program = training.epochs, draft.program
    if training.drawn:
        return
    if epochs is None or not epochs.loader:
        rounds = isinstance(training.batches, ast.While) or counts(training.batches.iter)
        draft.report("same_order_in_rounds" if rounds else "same_order", training.batches)
        return
    line = f"{epochs.loader}.sampler.set_epoch({epochs.counter})"
    if not program.own_line(epochs.loop.body[0]):
        draft.report("loop_of_one_line", epochs.loop, line=line)
        return
    line = _where_distributed(draft, epochs.loop, line)
    if line not in draft.of(epochs.loop).first.get(epochs.loop, ()):
        draft.insert("first", epochs.loop, [line], _("a new order in each epoch"))


def _rank_zero(draft: Draft) -> None:
    """Plan it for the statements that write files."""
    program = draft.program
    for node in program.nodes(ast.Expr):
        call = node.value
        name = program.name(call) or f"?.{method_name(call)}" if isinstance(call, ast.Call) else ""
        if not name or not listed("rank_zero", name):
            continue
        test = "dist.get_rank() == 0"
        if program.file(node) is not program.entry:
            test = f"not dist.is_initialized() or {test}"
        withs = (
            up for up in program.around(node, ast.With) if program.scope_of(up) is program.scope_of(node)
        )
        items = (ast.dump(item.context_expr) for up in withs for item in up.items)
        # The file may be opened around the statement: that one rank does, too.
        if not program.own_line(node) or any("id='open'" in item for item in items):
            draft.report("written_by_every_rank", node, test=test)
            continue
        draft.indent(node, node, f"if {test}:", _("only one rank writes"))


def _show_bars_once(draft: Draft) -> None:
    """Plan ``disable=`` for the bars that have none."""
    program = draft.program
    for call in program.nodes(ast.Call):
        given = any(one.arg in ("disable", None) for one in call.keywords)
        if given or not listed("bars", program.name(call)):
            continue
        disable = "disable=dist.get_rank() != 0"
        if program.scope_of(call) is program.file(call).tree or program.file(call) is not program.entry:
            disable = "disable=dist.is_initialized() and dist.get_rank() != 0"
        draft.change_arguments(call, [], [disable])
        draft.changed(call, _("only one rank shows the progress bar"))


def _set_up(draft: Draft, models: Sequence[Wrapped]) -> None:
    program, tree = draft.program, draft.program.entry.tree
    changes = draft.of(tree)
    guard = next(filter(is_main_guard, tree.body), None)
    # No wrapped model is left to hold the process group; those of functions are gone with these.
    free = [
        f"{model.home.text} = {model.home.text}.module"
        for model in models
        if model.home.scope is tree and program.parent(model.behind) in (tree, guard)
    ]
    begin, end = ["setup_distributed()", *draft.set_up], [*free, "leave_distributed()"]
    others, changes.imports = changes.imports, []  # they come behind these
    draft.use(tree, "\n".join([*begin, *end]))
    changes.imports += others
    if isinstance(guard, ast.If) and not _works_above(program, guard):
        if not program.own_line(guard.body[0]):
            raise UncertainError("main_block", guard)
        changes.first.setdefault(guard, [])[:0] = begin
        if not _leaves(guard.body[-1]):
            changes.last.setdefault(guard, []).extend(end)
    else:
        guard = None
        changes.header = "\n".join(begin) + "\n"
        if not _leaves(tree.body[-1]):
            changes.end.extend(end)
    message = _("process group set-up and shutdown")
    draft.changed(guard or tree.body[0], message, "INSERT", begin[0])


def _works_above(program: Program, guard: ast.If) -> bool:
    """Whether something outside of the main block and of functions puts things on a device."""
    calls = program.own_nodes(program.entry.tree, ast.Call)
    outside = [call for call in calls if not guard.lineno <= call.lineno <= (guard.end_lineno or 0)]
    names = [name for name in map(program.name, outside) if name.startswith("torch.cuda.")]
    moves = any(method_name(call) in ("to", "cuda", "backward") for call in outside)
    return moves or any(not name.endswith(("is_available", "device_count")) for name in names)


def _leaves(statement: ast.stmt) -> bool:
    text = ast.dump(statement)
    return isinstance(statement, ast.Raise) or "attr='exit'" in text or "id='exit'" in text
