"""The names that a model has in a program, and what is done with it under them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from migrator.convert.draft import UncertainError
from migrator.convert.program import LOOPS, Home, Program, calls_in, dotted, is_stored, method, method_name
from migrator.names.tree import Function, only_target
from migrator.project.frameworks import listed

CHECKPOINTS = ("state_dict", "load_state_dict")
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
    """A model that is wrapped behind a statement, and the changes of its uses.

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
        scope, file = program.scope_of(self.behind), program.file(self.behind)
        end = file.end(self.behind)
        return [one for one in found if program.scope_of(one) is not scope or file.start(one) >= end]

    def follow(self) -> None:
        """Judge the uses of the model. Raises UncertainError where training goes past the wrapper."""
        program, seen = self.program, self._family(self.home)
        for home in seen:  # grows
            name, objects = home.text.partition(".")[2], list[ast.expr]()
            if isinstance(home.scope, ast.ClassDef):  # for self.model each trainer.model of its objects
                named = (node for node in program.nodes(ast.Attribute) if node.attr == name)
                others = (node for node in named if dotted(node.value) != "self")
                objects += (one for one in others if home.scope in program.classes_of(one.value))
            for node in [*self.uses(home), *objects]:
                up = program.parent(node)
                if not isinstance(up, ast.Attribute):
                    more = (one for each in self._handed_on(node) for one in self._family(each))
                    seen += (one for one in more if one not in seen)
                elif not is_stored(node):
                    self._attribute(home, node, up)
        known = {one for home in seen for one in self.uses(home)}
        for node in self.inner:  # what is wrapped while the program trains may be bare at other times
            here = Home(program.scope_of(node), dotted(node))
            calls = program.call_sites(here.scope) if here.is_parameter and here != self.home else ()
            bare = any(program.argument(call, here.scope, here.text) not in known for call in calls)
            self.inner[node] = bare or program.file(node) is not program.entry  # others may import the file
        if not self.calls:
            raise UncertainError("model_not_called", self.behind, home=self.home)

    def _attribute(self, home: Home, node: ast.expr, up: ast.Attribute) -> None:
        """Judge ``model.something``."""
        program = self.program
        around = program.parent(up)
        inside = up.attr == "module" and isinstance(around, ast.Attribute)
        asked = around if inside and isinstance(around, ast.Attribute) else up
        if listed("same_when_wrapped", asked.attr) or (asked.attr in CHECKPOINTS and self.has_prefix(node)):
            return
        trains = node in self.training and program.file(asked).call_of(asked) is not None
        if trains and asked.attr not in CHECKPOINTS:
            own = program.method_of(node, asked.attr)
            if own is None or _uses_parts(program, own):
                raise UncertainError("training_calls_method", asked, home=home, up=asked)
        if not inside:
            self.inner[node] = False

    def _family(self, home: Home) -> list[Home]:
        """A scope, and for ``self.name`` the classes that inherit the name."""
        if not isinstance(home.scope, ast.ClassDef):
            return [home]
        return [Home(one, home.text) for one in self.program.family(home.scope)]

    def _handed_on(self, node: ast.expr) -> Iterator[Home]:
        """Judge a use that asks for no attribute; gives the scopes to which it hands the model."""
        program = self.program
        up, call = program.parent(node), program.taker_of(node)
        if is_stored(node):
            return
        if isinstance(call, ast.Call):
            name = program.name(call) or dotted(call.func)
            if call.func is node:
                self.calls += [node] if node in self.training else []
            elif given := program.receiving(call, node):
                yield from given
            elif listed("need_the_model", name):
                asked = [ast.dump(one) for one in call.args[1:]]  # hasattr(model, "module")
                of_wrapper = name in ("hasattr", "getattr") and "Constant(value='module')" in asked[:1]
                of_class = name == "isinstance" and any("DataParallel" in one for one in asked)
                if not (of_wrapper or of_class):
                    self.inner[node] = False
            elif not listed("take_a_wrapped_model", name):
                self.unclear.append(node)
        elif isinstance(up, ast.Assign) and only_target(up) is not None and up.value is node:
            yield from self._kept(up.targets[0], node)
        elif isinstance(up, ast.Return):
            for site in program.call_sites(program.scope_of(node)):
                assign = program.parent(site)
                if not isinstance(assign, ast.Expr):
                    target = assign.targets[0] if isinstance(assign, ast.Assign) else None
                    yield from self._kept(target, node, site)
        elif not isinstance(up, (ast.Compare, ast.Expr, ast.BoolOp, ast.If)):
            self.unclear.append(node)

    def _kept(self, target: ast.expr | None, node: ast.expr, site: ast.expr | None = None) -> Iterator[Home]:
        """The scope in which a value, which comes to a ``site``, is kept under a name."""
        kept = self.program.home_of_target(target, site or node)
        if kept is not None:
            yield kept
        else:
            self.unclear.append(node)


def _uses_parts(program: Program, function: Function, depth: int = 4) -> bool:
    """Whether a method uses what was made by calls, as layers and parameters are, or hands the object on."""
    owner = program.class_of(function)
    if owner is None or not depth:
        return True
    for node in ast.walk(function):
        part = program.parent(node) if isinstance(node, ast.Name) and node.id == "self" else None
        if part is None or is_stored(part):
            continue
        if not isinstance(part, ast.Attribute):
            return True
        own = method(owner, part.attr)
        if own is not None and own is not function and not _uses_parts(program, own, depth - 1):
            continue
        values = program.values(owner, f"self.{part.attr}")
        made = any(value is None or isinstance(value, ast.Call) for value, _ in values)
        # next(self.parameters()).device, next(self.training): nothing is computed.
        around = program.parent(part)
        taker = program.taker_of(around) if around and part.attr in ("parameters", "training") else None
        asked = isinstance(taker, ast.Call) and dotted(taker.func) == "next"
        if (made or not values) and not asked:
            return True
    return False
