"""A profile for people, as text or Markdown, and for programs, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Optional

from migrator import __version__
from migrator.files.errors import harmless
from migrator.insight.rows import size
from migrator.language import N_, _
from migrator.profile.insight import Rows, seen_at
from migrator.profile.model import PARTS, Advice, Memory, Operator, Operators, Profile

SCHEMA = 1
_MOST = 5
_NAMES = {
    "compute": N_("computing"),
    "communication": N_("communication"),
    "bubble": N_("pipeline bubbles"),
    "data": N_("data loading"),
    "fallback": N_("CPU fallback"),
    "host": N_("waiting for the host"),
}
_AGAINST = N_("{name}: {this}, there {other} ({ratio:.2g} times)")
Blocks = Iterator[tuple[str, Iterator[str]]]


def blocks(profile: Profile, rows: Rows, other: Optional[Profile]) -> Blocks:
    """The report: headings with their lines."""
    if profile.emulated:
        said = N_("The NPU was emulated: all times are the CPU's, and say nothing of an NPU's speed.")
        yield _("Emulated"), iter([_(said)])
    if profile.steps:
        yield _("Step"), _step(profile)
        yield _("Costs most"), _costs(profile)
        yield _("Seen on emulated NPUs"), _seen(profile, rows)
    if other:
        yield _("Compared with {path}", path=other.path), _compared(profile, other)
    for memory in profile.memory:
        yield _("Memory of {device}", device=memory.device), _held(memory)
    yield _("What to change"), _advised(profile.advice, rows)
    if profile.notes:
        yield _("Notes"), iter(dict.fromkeys(profile.notes))


def _step(profile: Profile) -> Iterator[str]:
    unmarked = N_("{time}: all that was recorded, as no step is marked (give a schedule and call step())")
    said = N_("{time}, the mean of {steps} steps") if profile.marked else unmarked
    yield _(said, time=_ms(profile.step), steps=profile.steps)
    for part in sorted(profile.parts, key=lambda part: (-profile.parts[part], PARTS.index(part))):
        if spent := profile.parts[part]:
            yield f"{spent / profile.step:5.1%}  {_ms(spent):>10}  {_(_NAMES[part])}"


def _costs(profile: Profile) -> Iterator[str]:
    for one in costly(profile.kernels)[:3]:
        name, time = f"{one.name} {one.kind}".strip(), _ms(one.device)
        yield _("kernel {name}: {time}, calls: {calls:.3g}", name=name, time=time, calls=one.calls)
    for one in costly(profile.operators)[:3]:
        time = _ms(one.device) if one.device else _("{time} of the host", time=_ms(one.host))
        said = _("operator {name}: {time}, calls: {calls:.3g}", name=one.name, time=time, calls=one.calls)
        yield f"{said}  {one.place}".rstrip()


def _seen(profile: Profile, rows: Rows) -> Iterator[str]:
    """What a recorded run says of lines of the profile, the most costly first."""
    times: dict[str, float] = {}
    for one in profile.operators.values() if rows else ():
        for place, time in one.places.items():
            times[place] = times.get(place, 0.0) + time
    said = ((time, line) for place, time in times.items() for line in seen_at(rows, place))
    yield from (f"{_ms(time)}  {line}" for time, line in sorted(said, reverse=True)[:_MOST])


def costly(found: Operators) -> list[Operator]:
    """Operators by their time on the device, or on the host where none has any."""
    return sorted(found.values(), key=lambda one: (-one.device, -one.host, one.name))


def _held(memory: Memory) -> Iterator[str]:
    yield _("peak {peak}, reserved {reserved}", peak=size(memory.allocated), reserved=size(memory.reserved))
    for one in costly(memory.holders)[:_MOST]:
        yield f"{size(one.device)}  {one.name} {one.place}".rstrip()
    rest = memory.allocated - sum(one.device for one in memory.holders.values())
    if rest > 0 and memory.when:
        yield _("{size}  from before the profile", size=size(rest))
    for name, held in sorted(memory.modules.items(), key=lambda each: -each[1])[:3]:
        yield _("{size} in module {name}", size=size(held), name=name)


def _advised(found: Sequence[Advice], rows: Rows) -> Iterator[str]:
    if not found:
        yield _("nothing stands out")
    for i, one in enumerate(found, 1):
        gain = size(one.gain) if one.memory else _ms(one.gain)
        up_to = _("up to {gain} ({share:.0%}): ", gain=gain, share=one.share) if one.gain else ""
        yield f"{i}. {up_to}{one.what}"
        seen = (line for place in one.places for line in seen_at(rows, place))
        yield from (f"   {line}" for line in (one.do, *one.places, *seen))


def compared(profile: Profile, other: Profile) -> list[dict[str, Any]]:
    """Operators of both profiles by how much more time the first one takes for them in a step."""
    found = [
        {"operator": name, "this": one.device, "other": there.device}
        for name, one in profile.operators.items()
        if (there := other.operators.get(name)) and (one.device or there.device)
    ]
    return sorted(found, key=lambda each: each["other"] - each["this"])


def _compared(profile: Profile, other: Profile) -> Iterator[str]:
    pairs = [(_("step"), profile.step, other.step)]
    pairs += [(_(_NAMES[part]), profile.parts.get(part, 0.0), other.parts.get(part, 0.0)) for part in PARTS]
    slower = (row for row in compared(profile, other)[:_MOST] if row["this"] > row["other"])
    pairs += [(row["operator"], row["this"], row["other"]) for row in slower]
    for name, this, that in pairs:
        if max(this, that) > 0.01 * profile.step:
            ratio = this / that if that else float("inf")
            yield _(_AGAINST, name=name, this=_ms(this), other=_ms(that), ratio=ratio)


def _ms(time: float) -> str:
    return f"{time / 1000:.3g} ms"


def as_text(profile: Profile, told: Blocks, markdown: bool) -> str:
    """The report, each block under its heading."""
    head = profile.path + (_(" (rank {rank})", rank=profile.rank) if profile.rank else "")
    lines = [f"# {head}" if markdown else head]
    for heading, body in told:
        if found := list(body):
            lines += ["", f"## {heading}", ""] if markdown else [heading]
            lines += [
                f"{'-' if line[0] != ' ' else ' '} {line}" if markdown else f"  {line}" for line in found
            ]
    return harmless("\n".join(lines))


def as_json(profile: Profile, rows: Rows, other: Optional[Profile]) -> dict[str, Any]:
    """All of it. ``docs/profile.md`` has the keys."""
    more = {"path": other.path, "step": other.step, "parts": other.parts} if other else {}
    against = {"against": {**more, "operators": compared(profile, other)}} if other else {}
    places = {place for one in profile.operators.values() for place in one.places}
    places.update(place for one in profile.advice for place in one.places)
    seen = {place: said for place in sorted(places) if (said := seen_at(rows, place))}
    return {"schema": SCHEMA, "npumigrate": __version__, **asdict(profile), "seen": seen, **against}
