"""The names that a model has in a program, and what is done with it under them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from migrator.convert.draft import Draft
from migrator.convert.program import LOOPS, Home, Program, calls_in, dotted, is_after, is_stored, method_name
from migrator.names.tree import only_target
from migrator.project.distributed_use import listed

_MOST_GROUPS = 8


def owners_of_parameters(node: ast.AST) -> list[ast.expr]:
    """What is asked for parameters in an expression: by ``parameters()``, or ``get_1x_lr_params()``."""
    asked = (call.func for call in calls_in(node) if "param" in method_name(call))
    return [func.value for func in asked if isinstance(func, ast.Attribute)]


def owners_behind(program: Program, given: ast.expr) -> list[ast.expr]:
    """The same, or else what is asked for them where the names in it come from."""
    found = owners_of_parameters(given)
    waiting = [given]
    for node in waiting if not found else ():  # grows: what the names of groups stand for
        names = [one for one in ast.walk(node) if isinstance(one, ast.Name) and not is_stored(one)]
        for origin in (each for name in names for each in program.origins(name)):
            found += owners_of_parameters(origin)
            if len(waiting) < _MOST_GROUPS and origin not in waiting:
                waiting.append(origin)
    return found


def unmoved(node: ast.AST | None) -> ast.AST | None:
    """The model in ``model.to(device)`` and ``nn.DataParallel(model)``."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
            node = node.func.value
        elif node.args and dotted(node.func).split(".")[-1] == "DataParallel":
            node = node.args[0]
        else:
            break
    return node


def free_models(program: Program, guard: ast.AST, wrapped: Iterable[tuple[Home, ast.stmt]]) -> list[str]:
    """Lines for the end of a script, before the process group goes: no wrapped model is left to hold it.

    ``guard`` is the main block, or the module; ``wrapped`` are the models, and the statements behind which
    they are wrapped. The models of functions are gone with these.
    """
    tree = program.file(guard).tree
    return [
        f"{home.text} = {home.text}.module"
        for home, behind in wrapped
        if home.scope is tree and program.parent(behind) in (tree, guard)
    ]


def prepares(program: Program, node: ast.AST, depth: int = 6) -> bool:
    """Whether a use of the model belongs to its making: it is not called, and not handed to what calls it."""
    up, call = program.parent(node), program.taker_of(node)
    if is_stored(node):
        return True
    if isinstance(up, ast.Attribute):
        return up.attr != "forward"
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    if program.definition_of(call) is None:  # of another package
        return not isinstance(program.statement_of(call), LOOPS)
    uses = (program.uses(home) for home in program.receiving(call, node))
    return all(depth and all(prepares(program, one, depth - 1) for one in each) for each in uses)


# -- where the wrapped model goes -----------------------------------------


@dataclass
class Wrapped:
    """A model that is wrapped behind a statement, and what becomes of its uses.

    ``training``: the nodes that run in its training loops. ``in_part``: an optimizer takes only some of its
    parameters. ``inner``: the uses that need the model inside; True where it may be bare. ``unclear``: those
    that go where nothing is known of. ``calls``: those that train. ``bare``: each ``model.module`` where it
    is not wrapped yet. ``prefixed``: its keys in checkpoints have a ``module.`` before them, but in branches
    that are taken ``unless`` these conditions hold.
    """

    program: Program
    home: Home
    behind: ast.stmt
    training: Collection[ast.AST]
    in_part: bool = False
    inner: dict[ast.expr, bool] = field(default_factory=dict)
    unclear: list[ast.expr] = field(default_factory=list)
    calls: list[ast.expr] = field(default_factory=list)
    bare: list[ast.Attribute] = field(default_factory=list)
    prefixed: bool = False
    unless: frozenset[str] = frozenset()

    def has_prefix(self, node: ast.AST) -> bool:
        """Whether the keys of checkpoints have a ``module.`` before them where a model is used."""
        around = self.program.above(node)
        other = (ast.dump(up.test) for child, up in around if isinstance(up, ast.If) and child in up.orelse)
        return self.prefixed and not self.unless.intersection(other)

    def uses(self, home: Home) -> list[ast.expr]:
        """The uses of a scope's name in which it is the wrapped model's."""
        found, program = self.program.uses(home), self.program
        if home != self.home:
            return found
        scope = program.scope_of(self.behind)
        return [one for one in found if program.scope_of(one) is not scope or is_after(one, self.behind)]

    def bare_arguments(self, node: ast.expr, seen: Iterable[Home]) -> list[bool]:
        """Of each call that gives the parameter which a node is: whether it may give the bare model."""
        known, scope = {one for home in seen for one in self.uses(home)}, self.program.scope_of(node)
        calls = self.program.call_sites(scope)
        return [self.program.argument(call, scope, dotted(node)) not in known for call in calls]

    def use_the_model_inside(self, draft: Draft, message: str) -> None:
        """Plan ``.module`` where the model itself is needed; report where that is not known."""
        for node, perhaps in self.inner.items():
            text = self.program.segment(node)
            code = f'getattr({text}, "module", {text})' if perhaps else f"{text}.module"
            draft.replace(node, code, message)
        for bare in self.bare:
            draft.replace(bare, self.program.segment(bare.value), "the model is not wrapped yet")
        for node in self.unclear:
            draft.report("wrapped_here", node, text=dotted(node) or "what comes back")

    def follow(self, attribute: Callable[[Home, ast.expr, ast.Attribute], None]) -> list[Home]:
        """Judge the uses of the model; gives all scopes in which it has a name.

        ``attribute`` judges ``model.something``.
        """
        seen = self._family(self.home)
        for home in seen:  # grows
            for node in [*self.uses(home), *self._of_objects(home)]:
                up = self.program.parent(node)
                if not isinstance(up, ast.Attribute):
                    more = (one for each in self._handed_on(home, node) for one in self._family(each))
                    seen += (one for one in more if one not in seen)
                elif not is_stored(node):
                    attribute(home, node, up)
        return seen

    def _family(self, home: Home) -> list[Home]:
        """A scope, and for ``self.name`` the classes that inherit the name."""
        if not isinstance(home.scope, ast.ClassDef):
            return [home]
        return [Home(one, home.text) for one in self.program.family(home.scope)]

    def _of_objects(self, home: Home) -> list[ast.expr]:
        """For ``self.model`` of a class, each ``trainer.model`` of its objects."""
        if not isinstance(home.scope, ast.ClassDef):
            return []
        name = home.text.partition(".")[2]
        return [
            node
            for node in self.program.nodes(ast.Attribute)
            if node.attr == name and dotted(node.value) != "self"
            if home.scope in self.program.classes_of(node.value)
        ]

    def _handed_on(self, home: Home, node: ast.expr) -> Iterator[Home]:
        """Judge a use that asks for no attribute; gives the scopes to which it hands the model."""
        up, call = self.program.parent(node), self.program.taker_of(node)
        if is_stored(node):
            return
        if isinstance(call, ast.Call):
            yield from self._argument(home, node, call)
        elif isinstance(up, ast.Assign) and only_target(up) is not None and up.value is node:
            yield from self._kept(up.targets[0], node)
        elif isinstance(up, ast.Return):
            yield from self._returned(node)
        elif not isinstance(up, (ast.Compare, ast.Expr, ast.BoolOp, ast.If)):
            self.unclear.append(node)

    def _argument(self, home: Home, node: ast.expr, call: ast.Call) -> Iterator[Home]:
        """The same for a use that is called, or is an argument of a call."""
        if call.func is node:
            self.calls += [node] if node in self.training else []
            return
        name = self.program.name(call) or dotted(call.func)
        given = self.program.receiving(call, node)
        if given:
            yield from given
        elif listed("need_the_model", name):
            if not _asks_for_wrapper(call):
                self.inner[node] = False
        elif not listed("take_a_wrapped_model", name):
            self.unclear.append(node)

    def _returned(self, node: ast.expr) -> Iterator[Home]:
        """The scopes that get a value which a function returns."""
        for site in self.program.call_sites(self.program.scope_of(node)):
            assign = self.program.parent(site)
            if isinstance(assign, ast.Expr):
                continue
            target: ast.expr | None = assign.targets[0] if isinstance(assign, ast.Assign) else None
            yield from self._kept(target, node, site)

    def _kept(self, target: ast.expr | None, node: ast.expr, site: ast.expr | None = None) -> Iterator[Home]:
        """The scope in which a value, which comes to a ``site``, is kept under a name."""
        kept = self.program.home_of_target(target, site or node)
        if kept is None:
            self.unclear.append(node)
            return
        yield kept


def _asks_for_wrapper(call: ast.Call) -> bool:
    """Whether it is asked if a model is wrapped: ``hasattr(model, "module")``."""
    name = dotted(call.func)
    given = [ast.dump(one) for one in call.args[1:]]
    if name in ("hasattr", "getattr"):
        return "Constant(value='module')" in given[:1]
    return name == "isinstance" and any("DataParallel" in one for one in given)
