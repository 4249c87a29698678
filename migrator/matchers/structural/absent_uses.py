"""Where a file uses what the project's torch, torchvision or torch_npu does not have: names and parameters.

What a release has is in ``migrator.api_support``: ``torch_names`` and ``npu_names``. What a program asks for
before it uses it, or can do without, is no use: ``migrator.names.conditions``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from migrator.api_support.npu_names import absence, spelled
from migrator.api_support.torch_names import of_version, short, spans, when
from migrator.api_support.versions import TorchVersion
from migrator.language import _
from migrator.light import NamedTuple
from migrator.matchers.context import FileContext
from migrator.names.conditions import MISSING, is_guarded
from migrator.names.tree import Import, attributes, imported, is_read
from migrator.names.what_is import CLASS, MODULE, TENSOR, UNKNOWN
from migrator.names.written_names import Written, may_give, names_in

_PACKAGES = ("torch", "torchvision")
_OF_NPUS = ("torch_npu.", "torch.npu.")
_CLASSES = {TENSOR: "torch.Tensor", MODULE: "torch.nn.Module"}
# What nothing but a module has, or only a module takes keywords for.
_MODULE_METHODS = frozenset(
    "load_state_dict named_buffers named_parameters register_forward_hook register_forward_pre_hook"
    " register_full_backward_hook register_full_backward_pre_hook register_load_state_dict_post_hook"
    " register_load_state_dict_pre_hook register_state_dict_post_hook register_state_dict_pre_hook".split()
)
# Rules of their own speak of these.
_ELSEWHERE = ("torch.cuda.", "torch.npu.", "torch.version.")


class Use(NamedTuple):
    """A use of a name that is absent, or of a callable with a parameter that is.

    Of what an import has ``written``, ``name`` is what is known: ``torch._six`` of ``torch._six.inf``. Those
    of torch_npu are in the form torch_npu.npu.…. ``about`` says which rules it is for.
    """

    node: ast.expr | Import
    written: str
    name: str
    about: str = ""
    message: str = ""
    parameter: ast.keyword | None = None


def starting_words(version: TorchVersion, written: Written) -> frozenset[str]:
    """The words of a text from which the rules start in it: of names missing in the version or a callable."""
    found: set[str] = set()
    for package in written.words.intersection(_PACKAGES):
        for name in names_in(written, package):
            absent, last = _absent(name, version), name.rpartition(".")[2]
            if absent:
                found.update((last, absent.rpartition(".")[2]))
            elif may_give(written.text, last, written.words & _lacking(name, version)):
                found.add(last)
    if found or "torch" in written.words:
        for owner in _CLASSES.values():
            found.update(written.members & _absent_members(owner, version))
        for method in written.members & _MODULE_METHODS:
            if may_give(written.text, method, written.words & _lacking(f"torch.nn.Module.{method}", version)):
                found.add(method)
    return frozenset(found)


@cache
def _absent(name: str, version: TorchVersion) -> str:
    """The longest beginning of a dotted name that only another version has; empty for none."""
    names = of_version(version.text)
    if name.startswith(_ELSEWHERE) or names.present(name):
        return ""
    parts = name.split(".")
    beginnings = (".".join(parts[:length]) for length in range(len(parts), 1, -1))
    return next(filter(names.absent, beginnings), "")


@cache
def _lacking(name: str, version: TorchVersion) -> frozenset[str]:
    """The parameters of a callable that only another version has."""
    return of_version(version.text).lacking(name)


@cache
def _absent_members(owner: str, version: TorchVersion) -> frozenset[str]:
    """The members of a class that only another version has, but those that lists have too."""
    return of_version(version.text).absent_members(owner).difference(dir(list))


def uses_of_absent(context: FileContext) -> Iterator[Use]:
    """All unguarded uses in a file of what its torch does not have."""
    names = of_version(context.version.text)
    for use in _names(context):
        # Of a companion of torch these may be the sources; a folder ``torch`` is mostly not torch.
        if use.name.startswith("torch.") or not context.project.owns(use.name, context.name):
            about = {"context": _release(context, use.name), "absence": names.absence(use.name)}
            message = _("{name} is absent in {context}: {absence}", name=use.name, **about)
            yield use._replace(about="later" if names.is_later(use.name) else "earlier", message=message)
    yield from _parameters(context)


def _release(context: FileContext, name: str) -> str:
    whose = _("the torchvision of ") if name.startswith("torchvision") else ""
    return f"{whose}torch {short(context.version.text)}"


def _names(context: FileContext) -> Iterator[Use]:
    index, version = context.index, context.version
    refs = index.references()
    # What the file itself puts there, or brings by an import that is guarded.
    settled = {name for ref, name in refs if isinstance(ref, ast.Attribute) and not is_read(ref)}
    for node in index.imports:
        for name in imported(node):
            absent = _absent(name, version) if name.startswith(_PACKAGES) else ""
            if absent and _is_guarded(context, node, absent):
                settled.add(absent)
            elif absent:
                yield Use(node, name, absent)
    for ref, name in (each for each in refs if is_read(each[0])):
        use = _named(ref, name, version) if name.startswith(_PACKAGES) else _member(context, ref)
        if use is not None and use.name not in settled and not _is_guarded(context, use.node, use.name):
            yield use


def _named(ref: ast.expr, name: str, version: TorchVersion) -> Use | None:
    absent = _absent(name, version)
    if not absent:
        return None
    if isinstance(ref, ast.Call):  # getattr(torch, "compile")
        return Use(ref, absent, absent)
    # The node of the absent name: the chain may go on. What binds its root is reported where it stands.
    written = [*attributes(ref)][::-1]
    hidden = len(name.split(".")) - len(written)
    place = len(absent.split(".")) - hidden
    return Use(written[place - 1], absent, absent) if 0 < place <= len(written) else None


def _member(context: FileContext, ref: ast.expr) -> Use | None:
    """``x.untyped_storage()``: a member of what is surely a tensor, or a module."""
    for node in attributes(ref):
        absent = [each for each in _CLASSES.values() if node.attr in _absent_members(each, context.version)]
        owner = _owner(context, node) if absent else None
        if owner in absent:
            return Use(node, f"{owner}.{node.attr}", f"{owner}.{node.attr}")
    return None


def _owner(context: FileContext, node: ast.Attribute) -> str | None:
    """The class of torch of which something is a member."""
    kind = context.value(node.value).kind
    may_be_module = kind in (UNKNOWN, CLASS) and node.attr in _MODULE_METHODS
    return "torch.nn.Module" if may_be_module else _CLASSES.get(kind)


def _is_guarded(context: FileContext, node: ast.AST, name: str, *errors: str) -> bool:
    """Whether the program asks for a name, or for one that is as new, before it comes to a use."""

    def absent(other: str) -> bool:
        return other.startswith(_PACKAGES) and bool(_absent(other, context.version))

    # Of the parts those that the version does not have: ``amp`` and ``GradScaler`` without ``torch.amp``.
    parts = name.split(".")
    there = (place for place in range(2, len(parts)) if absent(".".join(parts[:place])))
    lacking = parts[next(there, len(parts)) - 1 :]
    return is_guarded(context.index, node, lacking, errors or MISSING, absent)


def _parameters(context: FileContext) -> Iterator[Use]:
    index = context.index
    for call in index.calls:
        name = index.qualified_name(call.func)
        if not name and isinstance(call.func, ast.Attribute) and call.func.attr in _MODULE_METHODS:
            name = f"{_owner(context, call.func)}.{call.func.attr}"
        lacking = _lacking(name, context.version) if name.startswith(_PACKAGES) else ()
        for keyword in call.keywords:
            word = keyword.arg or ""
            if word in lacking and not _is_guarded(context, call, f"{name}.{word}", "TypeError"):
                known = when(spans(name, word), context.version.tuple)
                about = {"name": name, "word": word, "context": _release(context, name), "when": known}
                message = _("{name} does not accept {word} in {context}: {when}", **about)
                if name.startswith("torch.") or not context.project.owns(name, context.name):
                    yield Use(call, name, name, "parameters", message, keyword)


def uses_of_npus(context: FileContext) -> Iterator[Use]:
    """All unguarded uses of names of torch_npu that it does not have, or may call deprecated."""
    index = context.index
    refs = [(ref, index.qualified_name(ref)) for ref in index.refs]
    # What the file itself puts there, or what its imports bring, which is reported of them.
    settled = {spelled(name) for ref, name in refs if isinstance(ref, ast.Attribute) and not is_read(ref)}
    for node in index.imports:
        for name in imported(node):
            use = _of_npu(context, node, spelled(name)) if name.startswith(_OF_NPUS) else None
            if use is not None and use.name not in settled:
                settled |= {use.name} if use.about != "deprecated" else set()
                yield use
    for ref, name in refs:
        # The members that are written, the outermost last; what binds their root is reported where it stands.
        for member in [*attributes(ref)][::-1] if name.startswith(_OF_NPUS) else ():
            full = spelled(index.qualified_name(member))
            if full.count(".") == 0 or full in settled or not isinstance(member.ctx, ast.Load):
                continue
            use = _of_npu(context, member, full)
            if use is not None:
                yield use
            if use is None or use.about != "deprecated":
                break


def _of_npu(context: FileContext, node: ast.expr | Import, name: str) -> Use | None:
    """What may be said of a name; of those that are there a rule knows which are deprecated."""
    away = absence(name, context.version)
    if away is None:
        message = _("torch_npu marks {name} as deprecated", name=name)
        return Use(node, name, name, "deprecated", message)
    if is_guarded(context.index, node, [name.rpartition(".")[2]], MISSING):
        return None
    if not away.first and not away.last:
        return Use(node, name, name, "unknown", _("no known torch_npu has {name}", name=name))
    release = _("torch_npu for torch {version}", version=short(context.version.text))
    later = away.later(context.version)
    known = _("first for torch {version}", version=short(away.first)) if later else ""
    known = known or _("last for torch {version}", version=short(away.last))
    message = _("{release} does not have {name}: {when}", release=release, name=name, when=known)
    return Use(node, name, name, "later" if later else "earlier", message)
