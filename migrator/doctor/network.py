"""Faults of HCCL's variables, of the NPUs' addresses and of the rank table."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from functools import cache

from migrator.api_support import env_vars
from migrator.data_folders import reports_yaml
from migrator.doctor.fault import Fault, fault
from migrator.doctor.machine import Machine
from migrator.language import _
from migrator.launch.hosts import parse_hccn
from migrator.launch.rank_table import RankTableError

_HCCN = "/etc/hccn.conf"
_PORTS = re.compile(r"auto|\d+(-\d+)?(,\d+(-\d+)?)*")


def variable_faults(machine: Machine) -> Iterator[Fault]:
    """Variables with values that HCCL or torch_npu do not take."""
    for name, (values, what) in _looked_at().items():
        value = machine.variables.get(name, "")
        problem = value and _problem(machine, values, value)
        if problem:
            yield fault("variable", name=name, value=value, problem=problem, what=what)
    if machine.variables.get("HCCL_WHITELIST_DISABLE") == "0":
        file = machine.variables.get("HCCL_WHITELIST_FILE", "")
        if not file or not machine.exists(file):
            yield fault(
                "whitelist",
                problem=_("is {file}, which is not a file", file=file) if file else _("is not set"),
            )


def hccn_faults(machine: Machine) -> Iterator[Fault]:
    """The addresses of the NPUs' own network cards, by which servers reach one another."""
    if machine.emulated is not None or not machine.npus():
        return
    if not machine.exists(_HCCN):
        yield fault("hccn-missing")
        return
    try:
        known = parse_hccn(machine.text(_HCCN), _HCCN)
    except RankTableError as error:
        yield fault("hccn-wrong", problem=error)
        return
    missing = [number for number in machine.npus() if number not in known]
    if missing:
        yield fault("hccn-incomplete", missing=", ".join(map(str, missing)), first=missing[0])


@cache
def _looked_at() -> dict[str, tuple[str, str]]:
    """The values that each variable takes, and what to write instead of others."""
    content = reports_yaml("doctor_variables.yaml")
    found = {one["name"]: (str(one["values"]), _(one["what"])) for one in content}
    for variable in env_vars.known().values():
        if variable.npu and variable.values:
            advice = variable.advice or _("unset it")
            found.setdefault(variable.npu, (" ".join(map(str, variable.values)), advice))
    return found


def _problem(machine: Machine, values: str, value: str) -> str:
    """What is wrong with a value; empty where it is right."""
    if values == "address":
        return _address_problem(machine, value)
    if values == "card":
        return _card_problem(machine, value)
    if values == "ports":
        return "" if _PORTS.fullmatch(value) else _("that is not a list of ports")
    if values == "number":
        return "" if re.fullmatch(r"\d+(\.\d+)?", value) else _("that is not a number from 0 on")
    limits = re.fullmatch(r"(\d+)-(\d+)", values)
    if limits is None:
        return "" if value in values.split() else _("HCCL and torch_npu take other values")
    if value.isdecimal() and int(limits[1]) <= int(value) <= int(limits[2]):
        return ""
    return _("it takes whole numbers from {limits} to {limits2}", limits=limits[1], limits2=limits[2])


def _address_problem(machine: Machine, value: str) -> str:
    try:
        address = str(ipaddress.ip_address(value))
    except ValueError:
        return _("that is not an IP address")
    own = machine.addresses()
    return _("no network card of this machine has that address") if own and address not in own else ""


def _card_problem(machine: Machine, value: str) -> str:
    """``eth,en``: cards whose names begin so; ``=eth0``: just that one; with ``^`` before it: all others."""
    cards = machine.cards()
    without = value.removeprefix("^")
    exact = without.startswith("=")
    wanted = [word for word in without.removeprefix("=").split(",") if word]
    if not wanted:
        return _("it names no network card")
    fit = {card for card in cards for word in wanted if (card == word if exact else card.startswith(word))}
    if not cards or (set(cards) - fit if value.startswith("^") else fit):
        return ""
    return _("no network card matches; there are {cards}", cards=", ".join(cards))
