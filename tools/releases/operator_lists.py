"""What the wheels of torch and torch_npu register, from the operator lists that they were generated from."""

from __future__ import annotations

import re
from typing import NamedTuple

from tools.releases.archive import Archive, WheelError

_FOLDER = "torch_npu/csrc/aten/"
_DEEPEST = 20
_LISTS = ("npu_native_functions.yaml", "npu_native_functions_by_codegen.yaml")


# An operator with its overload -> composite, cpu, none, or the one that it is made from.
Natives = dict[str, str]

# torch's own list, as torchgen has it; wheels before torch 1.12 have none.
_LIST = "torchgen/packaged/ATen/native/native_functions.yaml"
_COMPOSITE = frozenset(
    "CompositeImplicitAutograd CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional".split()
)


class Operators(NamedTuple):
    """Operators with their overload (``add.Tensor``): NPU kernels of torch's, and torch_npu's own."""

    aten: frozenset[str]
    custom: frozenset[str]


def read_operators(archive: Archive) -> Operators:
    """Read both lists.

    ``supported`` and ``autograd`` name operators of torch, ``custom`` those that torch_npu adds; an autograd
    formula for one of its own is no kernel of torch's. ``symint`` repeats others, and ``quant`` is about
    quantized tensors only. Raises WheelError where a list is missing or is not what it should be.
    """
    sections: dict[str, set[str]] = {}
    for name in _LISTS:
        lists = _parsed(archive, _FOLDER + name)
        if not isinstance(lists, dict):
            raise WheelError(f"{archive.path.name} is damaged: {_FOLDER}{name} is no operator list")
        for section, entries in lists.items():
            if isinstance(entries, list):
                ops = {_operator_name(archive, name, entry) for entry in entries}
                sections.setdefault(str(section), set()).update(ops)
    custom = sections.get("custom", set()) | sections.get("custom_autograd", set())
    aten = (sections.get("supported", set()) | sections.get("autograd", set())) - custom
    if not aten:
        raise WheelError(f"{archive.path.name} has no operators in {_FOLDER}: read its lists and adapt")
    return Operators(frozenset(aten), frozenset(custom))


def read_natives(archive: Archive) -> Natives:
    """What each operator is without a kernel of torch_npu; empty for a wheel that has no list.

    ``composite``: torch builds it from other operators. ``cpu``: it has a kernel for dense tensors on the
    CPU, and for devices that register one. ``none``: for neither. Else the operator (``mul.out``) whose
    kernel it uses.
    """
    if _LIST not in archive.entries:
        return {}
    entries = _parsed(archive, _LIST)
    if not isinstance(entries, list):
        raise WheelError(f"{archive.path.name} is damaged: {_LIST} is no operator list")
    found: Natives = {}
    for entry in entries:
        name = _operator_name(archive, _LIST, entry)
        keys = {key.strip() for keys in entry.get("dispatch") or {} for key in keys.split(",")}
        made_from = entry.get("structured_delegate", "")
        if keys & _COMPOSITE or not (keys or made_from):
            found[name] = "composite"
        else:
            found[name] = made_from or ("cpu" if "CPU" in keys else "none")
        # Variants that torchgen writes call the operator itself.
        for variant in str(entry.get("autogen") or "").split(","):
            if variant.strip():
                found[variant.strip()] = "composite"
    return found


def _parsed(archive: Archive, entry: str) -> object:
    """An operator list of a wheel. Raises WheelError where it is no YAML."""
    import yaml

    text = archive.text(entry)
    # The reader in C takes 0.2 s, the one in Python 3 s; not every installation has it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        # It crashes on deep nesting when it builds objects, but not when it makes events.
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.events.CollectionStartEvent)
            depth -= isinstance(event, yaml.events.CollectionEndEvent)
            if depth > _DEEPEST:
                raise ValueError("nested too deeply")
        loaded = yaml.load(text, Loader=loader)  # nosec B506 # a safe loader
    except (yaml.YAMLError, RecursionError, ValueError):
        raise WheelError(f"{archive.path.name} is damaged: {entry} is no YAML") from None
    return loaded


def _operator_name(archive: Archive, name: str, entry: object) -> str:
    """``add.Tensor`` of ``add.Tensor(Tensor self, …) -> Tensor``. Raises WheelError without a name."""
    text = entry.get("func") if isinstance(entry, dict) else entry
    # `add.Tensor(Tensor self, ...) -> Tensor`, or the name alone.
    found = re.match(r"\s*([A-Za-z_]\w*(?:\.\w+)?)\s*(?:\(|$)", text) if isinstance(text, str) else None
    if not found:
        raise WheelError(f"{archive.path.name} is damaged: {name} lists {ascii(text)[:60]}")
    return found.group(1)
