"""The torch versions that npumigrate knows, and what differs between them."""

from __future__ import annotations

import operator
import re
from functools import cache

from migrator.api_support import tables
from migrator.language import N_, MessageError, _
from migrator.light import NamedTuple

_SIGNS = {">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt}
CONDITION = re.compile(r"(>=|<=|==|>|<)\s*(\d+(?:\.\d+)*)\Z")


class UnknownVersion(MessageError):  # noqa: N818 - it says what is wrong, as LookupError does
    """A version that is not in versions.csv; the message names those that are, or the nearest of them."""


class TorchVersion(NamedTuple):
    """A torch version, and what torch and torch_npu do at it.

    ``evidence`` has the words docs (the documents list its APIs) and wheel (the torch_npu wheel was read), or
    is interpolated. ``documents`` is the edition of the documents, empty where there are none.
    """

    text: str
    tuple: tuple[int, ...]
    torch_npu: str
    evidence: str
    int_device_is_npu: bool
    has_set_default_device: bool
    has_oom_error: bool
    has_amp_grad_scaler: bool
    autoloads_backends: bool
    documents: str

    def __str__(self) -> str:
        return self.text

    @property
    def replaces_names(self) -> bool:
        """Whether torch_npu puts its own objects into torch's modules: torch.device, torch.load, collectives.

        It does before torch 2.1 (all_monkey_patches in torch_npu/__init__.py of its branches v1.8.1, v1.11.0
        and v2.0.1): what was imported by its name before that is not replaced.
        """
        return self.tuple < (2, 1)


@cache
def known() -> tuple[TorchVersion, ...]:
    """Every known version, oldest first."""
    found = []
    for torch, torch_npu, evidence, _torch_wheel, _npu_wheel, *switches, source in tables.rows("versions"):
        does, documents = (word == "yes" for word in switches), source.partition("documents ")[2]
        row = (torch, tables.as_tuple(torch), torch_npu, evidence, *does, documents)
        found.append(TorchVersion._make(row))
    return tuple(found)


def newest() -> TorchVersion:
    """The newest known version."""
    return known()[-1]


@cache
def resolve(text: str) -> TorchVersion:
    """The known version that a user's words mean.

    Takes '2.6.0', '1.11', 'v2.6', '2.1.0+cu118', '2.7.1.post2' and '2.6.0a0'. A micro release that is not
    known stands for the known one of its minor release: torch_npu makes one line of releases for each. Raises
    UnknownVersion for anything else.
    """
    found = re.fullmatch(
        r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(\.?(post|dev|rc|a|b)\d*)*(\+[\w.]+)?",
        text.strip(),
        re.IGNORECASE,
    )
    try:
        known()
    except FileNotFoundError as error:  # the folder that NPUMIGRATE_API_DB names
        raise UnknownVersion(str(error)) from None
    if found:
        given = tuple(int(part) for part in found.group(1, 2, 3) if part)
        for size in (3, 2):
            for version in known():
                if version.tuple[:size] == given[:size]:
                    return version
        for row in tables.rows("torch_wheels"):
            if tables.as_tuple(row[0])[:2] == given[:2]:
                older = [version.text for version in known() if version.tuple < given]
                newer = [version.text for version in known() if version.tuple > given]
                why = N_("torch_npu has no release for torch {short}: choose the nearest, {nearest}")
                nearest = _(" and ").join([*older[-1:], *newer[:1]])
                raise UnknownVersion(why, short=".".join(map(str, given)), nearest=nearest)
    names = ", ".join(version.text for version in known())
    raise UnknownVersion("unknown torch version {text!r}: choose from {names}", text=text, names=names)


def in_range(conditions: str, version: tuple[int, ...]) -> bool:
    """Whether a version meets all of ``conditions``, such as ``>=2.1,<2.6``; none are always met."""
    found = (CONDITION.match(part.strip()) for part in conditions.split(",") if part.strip())
    return all(each and meets(version, each[1], tables.as_tuple(each[2])) for each in found)


def meets(version: tuple[int, ...], sign: str, wanted: tuple[int, ...]) -> bool:
    """Whether a version, as far as another one says it, is before, behind or the same."""
    return bool(_SIGNS[sign](version[: len(wanted)], wanted))
