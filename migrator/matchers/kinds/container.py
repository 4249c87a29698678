"""Kind ``container``: services of Docker Compose and development containers that are given GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from migrator.findings.edits import line_edits
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.launch.containers import ContainerError, Service, numbers_of, run_options, services
from migrator.matchers.context import Match, TextContext, found_in_text
from migrator.matchers.packs import Rule
from migrator.other_files.index import Setting, Span

_EVERY = N_(
    "All GPUs were replaced with the NPU /dev/davinci0: add a line for each other NPU of the machine."
)
_LINES = N_("Give it the NPU device files and the driver folders: ")
_RUN_ARGUMENT = re.compile(r"(?:\A|\.)runArgs\.\d+\Z")


def find(context: TextContext, rules: list[Rule]) -> Iterator[Match]:
    """The services and arguments that ask for GPUs."""
    if context.index.type == "yaml":
        for service in services(context.index.data.decode("utf-8")):
            yield _of_service(context, rules[0], service)
    elif context.index.type == "json":
        yield from _of_run_arguments(context, rules[0])


def _of_service(context: TextContext, rule: Rule, service: Service) -> Match:
    lines = context.index.lines
    first = lines.span(service.line, service.line)[0]
    place = first + len(lines.data[first:]) - len(lines.data[first:].lstrip())
    edits = [] if service.text is None else line_edits(lines.data, service.text.encode("utf-8"))
    advice = _EVERY if service.every else ""
    if service.text is None:
        advice = f"{service.reason}. {_(_LINES)}{' '.join(run_options([0]))}."
    span, name = (place, lines.content_end(service.line)), service.name
    message = _("the service {name} uses GPUs", name=name)
    return found_in_text(context, rule, span, api=name, edits=edits, message=message, advice=advice)


def _of_run_arguments(context: TextContext, rule: Rule) -> Iterator[Match]:
    """``--gpus all`` and ``--runtime nvidia`` in the runArgs of a devcontainer.json."""
    arguments = [item for item in context.index.content.settings if _RUN_ARGUMENT.search(item.name)]
    asked = [*_asked(arguments)]
    if not asked:
        return
    main = next((one for one in asked if one.gpus), asked[0])
    span = _quoted(arguments[main.first])[0], _quoted(arguments[main.last])[1]
    advice, edits = "", []
    try:
        numbers = numbers_of(main.gpus or "all")
        edits = [Edit(*span, _options(context.index.data, span[0], numbers or [0]))]
        edits += [_removed(context.index.data, arguments, one) for one in asked if one is not main]
        advice = "" if numbers else _(_EVERY)
    except ContainerError as error:
        advice, edits = _("{error}. Write {value}.", error=error, value=" ".join(run_options([0]))), []
    api = str(arguments[main.first].value)
    message = _("the container uses GPUs")
    edits.sort(key=lambda edit: edit.start)
    yield found_in_text(context, rule, span, api=api, edits=edits, message=message, advice=advice)


@dataclass(frozen=True)
class _Asked:
    """Arguments that ask for GPUs, by their numbers; ``gpus`` is what ``--gpus`` says."""

    first: int
    last: int
    gpus: str = ""


def _asked(arguments: list[Setting]) -> Iterator[_Asked]:
    for number, item in enumerate(arguments):
        name, sign, value = (item.value or "").partition("=")
        last = number if sign else number + 1
        if name not in ("--gpus", "--runtime") or last == len(arguments):
            continue
        value = value if sign else arguments[last].value or ""
        if name == "--gpus":
            yield _Asked(number, last, value)
        elif value == "nvidia":
            yield _Asked(number, last)


def _quoted(item: Setting) -> Span:
    """The place of a string with its quotes."""
    start, end = item.value_span or item.name_span
    return start - 1, end + 1


def _options(data: bytes, start: int, numbers: list[int]) -> str:
    """The options of NPUs as strings, each on a line of its own where the first one begins a line."""
    line = data[data.rfind(b"\n", 0, start) + 1 : start].decode("utf-8")
    newline = "\r\n" if b"\r\n" in data else "\n"
    between = ", " if line.strip() else f",{newline}{line}"
    return between.join(f'"{option}"' for option in run_options(numbers))


def _removed(data: bytes, arguments: list[Setting], asked: _Asked) -> Edit:
    """The edit that removes arguments. Raises ContainerError where more than commas stand around them."""
    start, end = _quoted(arguments[asked.first])[0], _quoted(arguments[asked.last])[1]
    if asked.first:
        start, between = _quoted(arguments[asked.first - 1])[1], start
        text = data[start:between]
    else:
        end, between = _quoted(arguments[asked.last + 1])[0], end
        text = data[between:end]
    if text.strip(b", \t\r\n"):
        raise ContainerError("a comment stands among the arguments")
    return Edit(start, end, "")
