"""An explanation for people: on a terminal, and as Markdown; and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Optional

from migrator import __version__
from migrator.explain.judge import Explanation
from migrator.explain.table import Entry
from migrator.language import N_, _
from migrator.wrapping import columns, padded, wrap

_SURE = {"certain": N_("certain"), "likely": N_("likely"), "possible": N_("possible")}
_UNKNOWN = N_("No known error explains this.")
_COLLECT = (
    N_("The logs of all ranks: run torchrun with --log-dir DIR, then npumigrate explain --run DIR."),
    N_("CANN's own log: set ASCEND_PROCESS_LOG_PATH=DIR, run again, then npumigrate explain --run DIR."),
    N_("The line that fails: set ASCEND_LAUNCH_BLOCKING=1 and run again."),
    N_("The state of the machine: npumigrate doctor."),
)
_MOST_RANKS = 8
_SHOWN = 300  # characters of a message
# A heading, and its text or its items; numbered where the items are steps.
Part = tuple[str, Sequence[str], bool]


def as_text(parts: Sequence[Part], width: int) -> str:
    """The parts of an explanation, each beside its heading."""
    margin = max(columns(heading) for heading, _items, _steps in parts) + 2
    lines = []
    for heading, items, steps in parts:
        first = padded(heading, margin)
        for number, item in enumerate(items, 1):
            sign = f"{number}. " if steps else "- " if len(items) > 1 else ""
            lines += wrap(item, width, first + sign, " " * (margin + len(sign)))
            first = " " * margin
    return "\n".join(lines) + "\n"


def as_markdown(parts: Sequence[Part]) -> str:
    """The parts of an explanation, the first as its title."""
    (_heading, title, _steps), *others = parts
    text = f"## {title[0]}\n"
    for heading, given, steps in others:
        items = [f"<{item}>" if item.startswith("http") else item.replace("<", "\\<") for item in given]
        listed = [f"{number}. {item}" if steps else f"- {item}" for number, item in enumerate(items, 1)]
        text += f"\n**{heading}**\n\n" + "\n".join(listed if steps or len(items) > 1 else items) + "\n"
    return text


def parts_of(explanation: Optional[Explanation]) -> Iterator[Part]:
    """The explanation of a failure, in the language of the run."""
    if explanation is None:
        yield _("Unknown"), [_("No failure found.")], False
        yield _to_collect()
        return
    entry, record, place = explanation.entry, explanation.record, explanation.place
    said = f"{entry.code}: {_(entry.name)}" if entry else _(_UNKNOWN)
    yield _("Error") if entry else _("Unknown"), [said], False
    who = _ranks([explanation.rank]) if explanation.rank else ""
    if record.process and not who:
        who = _("process {process}", process=record.process)
    where = who, record.stamp, f"{record.log}:{record.line}" if record.log else ""
    yield _("First failure"), [", ".join(filter(None, where))], False
    if place:
        source = f": {place.source}" if place.source else ""
        yield _("Your code"), [f"{place.file}:{place.line}{source}"], False
    yield _("Message"), [" ".join(record.text.split())[:_SHOWN]], False
    yield from _about(entry) if entry else [_to_collect()]
    if explanation.silent:
        yield _("Not reported by"), [_ranks(explanation.silent)], False
    if others := explanation.others:
        said_too = [(f"{code}: {_(name)}", ranks) for code, name, ranks in others]
        lines = [f"{said} ({_ranks(ranks)})" if ranks else said for said, ranks in said_too]
        yield _("Also reported"), lines, False


def parts_of_entry(entry: Entry) -> list[Part]:
    """The explanation of an error by itself."""
    return [(_("Error"), [f"{entry.code}: {_(entry.name)}"], False), *_about(entry)]


def _about(entry: Entry) -> Iterator[Part]:
    said = entry.said()
    yield _("Cause"), [f"{said.cause} ({_(_SURE[entry.sure])})"], False
    yield _("Do"), said.do, True
    if entry.collect:
        yield _to_collect(entry.collect)
    yield _("Sources"), entry.source, False


def _to_collect(what: Sequence[str] = _COLLECT) -> Part:
    return _("To confirm"), [*map(_, what)], False


def _ranks(ranks: Sequence[str]) -> str:
    more = ", …" if len(ranks) > _MOST_RANKS else ""
    return _("rank {rank}", rank=", ".join(ranks[:_MOST_RANKS])) + more


def entry_data(entry: Entry) -> dict[str, Any]:
    """What programs get of an entry."""
    names = ("code", "name", "layer", "cause", "do", "collect", "sure", "source")
    return {name: getattr(entry, name) for name in names}


def as_data(explanation: Optional[Explanation]) -> dict[str, Any]:
    """What programs get."""
    data = {"schema": 1, "npumigrate": __version__, "code": None, "failure": None, "collect": _COLLECT}
    if explanation is None:
        return data
    record, place = explanation.record, explanation.place
    data["failure"] = {
        "rank": int(explanation.rank) if explanation.rank else None,
        "process": int(record.process) if record.process else None,
        "log": record.log,
        "line": record.line,
        "time": record.stamp or None,
        "type": record.type or None,
        "message": record.text,
        "place": place and place._asdict(),
    }
    data |= entry_data(explanation.entry) if explanation.entry else {}
    data["not_reported_by"] = [*map(int, explanation.silent)]
    data["others"] = [
        {"code": code, "name": name, "ranks": [*map(int, ranks)]} for code, name, ranks in explanation.others
    ]
    return data
