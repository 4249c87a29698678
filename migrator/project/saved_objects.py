"""What a program writes with torch.save that ``weights_only=True``, the default since torch 2.6, cannot read.

Tensors, numbers, strings and containers of them are read; modules, options and NumPy's values are not (seen
with torch 2.13).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from migrator.language import N_
from migrator.names.outline import Outline, Scope, assigned, outline
from migrator.names.tree import (
    argument_of,
    bare_name,
    body_fields,
    called_name,
    elements,
    last_name,
    string_value,
    touches,
    walk,
)
from migrator.project.offers import SAVED, Offer

# torch.save, and what programs put around it: a text that saves has one of these.
SAVING = ("torch.save(", "save_on_master(", "save_checkpoint(")
_SAVES = re.compile(rf"(?<![\w.])(?<!\bdef )(?:[\w.]+\.(?=save_))?(?:{'|'.join(map(re.escape, SAVING))})")
_OPTIONS = re.compile(r"args|(?:\w+_)?opts?|FLAGS|arguments|(?:parsed|cmd)_args")
# Objects of yacs, OmegaConf, MMEngine or of a class of the program; plain dictionaries in others.
_SETTINGS = re.compile(r"cfg|configs?|conf|hparams|hps")
_LOADERS = ("load", "safe_load", "full_load", "loads")
_MODULES = re.compile(r"(?:best_|ema_)?(?:model|net|network|netG|netD|generator|discriminator)")
_OPTIMIZERS = frozenset({"optimizer", "optim"})
# What programs measure with NumPy; an accuracy is a number or a tensor, as often as not.
_MEASURES = r"(?i:(?:(?:best|max|mean)_?)?(?:rank_?|m?iou|map|dice|f1|auc|psnr|ssim|pred|score|fitness)\d*)"
_IMPORTS_NUMPY = rb"(?m:^[ \t]*(?:import|from) numpy\b)"
_NUMBERS = ("float", "int", "item", "round", "len")  # what gives one of Python's numbers
_MOVES = ("to", "cuda", "npu", "cpu")
_NUMPY = ("np", "numpy")
_PLAIN = ("state_dict", "vars(", "dict(", "__dict__")


def saved_objects(text: str) -> frozenset[Offer]:
    """The objects in the files that a Python file saves; without a key, one is all of the file."""
    if not _SAVES.search(text):
        return frozenset()
    try:
        return frozenset(_saved(outline(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


def _saved(shared: Outline) -> Iterator[Offer]:
    saving = [shared.lines.line_of(match.start()) for match in re.finditer(rb"\bsave", shared.lines.data)]
    numpy = re.search(_IMPORTS_NUMPY, shared.lines.data) is not None
    for scope, call in _calls(shared, saving):
        what_is = partial(_what, scope, numpy)
        written = argument_of(call, "client_state") or call.args[0]  # of DeepSpeed
        parts = list(_parts(scope, written))
        if not parts:
            what = next(filter(None, map(what_is, elements(written) or [written])), None)
            # Who saves a model by a function of its own may take its state there.
            if what and ast.unparse(call.func) == "torch.save":
                yield Offer(SAVED, detail=(what,))
        keys = sorted({key for key, _ in parts})
        for key, value in parts:
            by_key = N_("objects, judging by the key") if key.endswith(("_object", "_objects")) else None
            if what := what_is(value) or by_key:
                yield Offer(SAVED, key, detail=(what, *keys))


def _calls(shared: Outline, saving: list[int]) -> Iterator[tuple[Scope, ast.Call]]:
    """The calls on some lines that save something, each with its scope."""
    for scope in shared.opened.values():
        plain = (each for each in scope.statements if not body_fields(each.__class__))
        for call in (node for each in plain if touches(each, saving) for node in walk(each)):
            if isinstance(call, ast.Call) and call.args and _SAVES.match(f"{ast.unparse(call.func)}("):
                yield scope, call


def _values(scope: Scope, node: ast.expr) -> list[ast.expr]:
    """What is assigned to something in its scope, or else around that."""
    text = ast.unparse(node)
    found = [value for target, value in assigned(scope, annotated=False) if ast.unparse(target) == text]
    return found or (_values(scope.parent, node) if scope.parent is not None else [])


def _parts(scope: Scope, written: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The keys and values of a dictionary that is written in a scope; none of something else."""
    if isinstance(written, (ast.Name, ast.Attribute)):
        text = ast.unparse(written)
        for target, value in assigned(scope, annotated=False):
            key = string_value(target.slice) if isinstance(target, ast.Subscript) else None
            if isinstance(target, ast.Subscript) and key is not None and ast.unparse(target.value) == text:
                yield key, value
            elif ast.unparse(target) == text and not isinstance(value, (ast.Name, ast.Attribute)):
                yield from _parts(scope, value)
    elif isinstance(written, ast.Dict):
        pairs = zip(map(string_value, written.keys), written.values)
        yield from ((key, value) for key, value in pairs if key is not None)
    elif isinstance(written, ast.Call) and bare_name(written.func) == "dict":
        yield from ((item.arg, item.value) for item in written.keywords if item.arg)


def _what(scope: Scope, numpy: bool, value: ast.expr) -> str | None:
    """What a value is that is not read with weights_only; None for all else."""
    if ast.unparse(value) == "torch.__version__":
        return N_("the version of torch, which is an object")
    if isinstance(value, ast.Call):
        function = ast.unparse(value.func)
        if called_name(value) in ("parse_args", "Namespace", "parse_known_args"):
            return N_("options of argparse")
        package, dot, rest = function.partition(".")
        is_numpy = package in _NUMPY and dot and rest and ("." not in rest or rest == "random.get_state")
        return N_("a value of NumPy") if is_numpy else None
    if isinstance(value, ast.Dict):
        inner = (_what(scope, numpy, each) for each in value.values if isinstance(each, ast.Call))
        return next(filter(None, inner), None)
    if not isinstance(value, (ast.Name, ast.Attribute)):
        return None
    sources = _values(scope, value)
    told = {_what(scope, numpy, each) if isinstance(each, ast.Call) else None for each in sources}
    if sources and None not in told:
        return told.pop()
    name = last_name(value)
    if any(isinstance(each, ast.Dict) or any(map(ast.unparse(each).count, _PLAIN)) for each in sources):
        return None  # a dictionary or a state
    if _OPTIONS.fullmatch(name):
        return N_("options of argparse, judging by the name")
    if isinstance(value, ast.Attribute) and bare_name(value.value) != "self":
        return None  # args.model is a name
    if numpy and re.fullmatch(_MEASURES, name):
        known = any(called_name(each) in _NUMBERS for each in sources) or all(
            isinstance(each, ast.Constant) for each in sources
        )
        return None if sources and known else N_("a metric, judging by the name, and maybe a NumPy value")
    if _SETTINGS.fullmatch(name):
        loaded = any(called_name(each) in _LOADERS for each in sources)
        return None if loaded else N_("settings, judging by the name, and maybe an object")
    if is_module_name(name):
        names = [called_name(each) for each in sources]  # of a class, or of what moves it
        made = not sources or any(each[:1].isupper() or each in _MOVES for each in names)
        return N_("a module, judging by the name") if made else None
    return N_("an optimizer, judging by the name") if name in _OPTIMIZERS else None


def is_module_name(name: str) -> bool:
    """Whether a name is one that programs give to a whole module."""
    return _MODULES.fullmatch(name) is not None


def is_options_name(name: str) -> bool:
    """Whether a name is one that programs give to options or settings, which may be an object."""
    return bool(_OPTIONS.fullmatch(name) or _SETTINGS.fullmatch(name))
