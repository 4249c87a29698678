"""A profile for people, as text or Markdown, and for programs, as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Optional

from migrator import __version__
from migrator.files.errors import harmless
from migrator.insight.rows import size
from migrator.language import N_, _
from migrator.profile.model import PARTS, Memory, Operator, Operators, Profile

_MOST = 5
Rows = list[dict[str, Any]]


def as_text(profile: Profile, rows: Rows, other: Optional[Profile], markdown: bool) -> str:
    """The report, each block under its heading. ``rows``: of ``npu_insight.json``; ``other``: of a GPU."""
    lines = [profile.path + (_(" (rank {rank})", rank=profile.rank) if profile.rank else "")]
    for heading, body in _blocks(profile, rows, other):
        if found := list(body):
            lines += ["", f"## {heading}", ""] if markdown else [heading]
            lines += [
                f"{'' if line[0] == ' ' else '- '}{line}" if markdown else f"  {line}" for line in found
            ]
    return harmless("\n".join([f"# {lines[0]}" if markdown else lines[0], *lines[1:]]))


def _blocks(profile: Profile, rows: Rows, other: Optional[Profile]) -> Iterator[tuple[str, Iterable[str]]]:
    if profile.emulated:
        said = N_(
            "The NPU was emulated: all times are those of the CPU, and show nothing about the speed of "
            "an NPU."
        )
        yield _("Emulated"), [_(said)]
    if profile.steps:
        yield _("Step"), _step(profile)
        yield _("Most expensive"), _costs(profile)
        yield _("Seen on emulated NPUs"), _seen(profile, rows)
    if other:
        yield _("Compared with {path}", path=other.path), _compared(profile, other)
    yield from ((_("Memory of {device}", device=each.device), _held(each)) for each in profile.memory)
    yield _("What to change"), _advised(profile, rows)
    yield _("Notes"), dict.fromkeys(profile.notes)


def _step(profile: Profile) -> Iterator[str]:
    unmarked = N_("{time}: everything recorded, as no step is marked (use a schedule and call step())")
    said = N_("{time}, the mean of {steps} steps") if profile.marked else unmarked
    yield _(said, time=_ms(profile.step), steps=profile.steps)
    for part, spent in sorted(profile.parts.items(), key=lambda each: -each[1]):
        if spent:
            yield f"{spent / profile.step:5.1%}  {_ms(spent):>10}  {_(PARTS[part])}"


def _costs(profile: Profile) -> Iterator[str]:
    for one in _costly(profile.kernels)[:3]:
        name, time = f"{one.name} {one.kind}".strip(), _ms(one.device)
        yield _("kernel {name}: {time}, calls: {calls:.3g}", name=name, time=time, calls=one.calls)
    for one in _costly(profile.operators)[:3]:
        time = _ms(one.device) if one.device else _("{time} of the host", time=_ms(one.host))
        said = _("operator {name}: {time}, calls: {calls:.3g}", name=one.name, time=time, calls=one.calls)
        yield f"{said}  {one.place}".rstrip()


def _costly(found: Operators) -> list[Operator]:
    """Operators by their time on the device, or on the host where none has any."""
    return sorted(found.values(), key=lambda one: (-one.device, -one.host, one.name))


def _seen(profile: Profile, rows: Rows) -> Iterator[str]:
    """What a recorded run says of lines of the profile, the most costly first."""
    times = Counter[str]()
    for one in profile.operators.values() if rows else ():
        times.update(one.places)
    said = ((time, line) for place, time in times.items() for line in seen_at(rows, place))
    yield from (f"{_ms(time)}  {line}" for time, line in sorted(said, reverse=True)[:_MOST])


def seen_at(rows: Rows, place: str) -> list[str]:
    """What the rows say of a line of the program, such as ``/a/model.py:41 forward``."""
    where, found = f"/{place.partition(' ')[0]}", []
    for row in rows:
        mine = f"{row.get('file')}:{row.get('line')}"
        if row.get("file") and where.endswith(f"/{mine}"):
            found.append(f"{mine}: {row.get('message')}. {row.get('advice')}".strip())
    return found[:3]


def _held(memory: Memory) -> Iterator[str]:
    yield _("peak {peak}, reserved {reserved}", peak=size(memory.allocated), reserved=size(memory.reserved))
    for one in _costly(memory.holders)[:_MOST]:
        yield f"{size(one.device)}  {one.name} {one.place}".rstrip()
    rest = memory.allocated - sum(one.device for one in memory.holders.values())
    if rest > 0 and memory.when:
        yield _("{size}  allocated before the profile", size=size(rest))


def _advised(profile: Profile, rows: Rows) -> Iterator[str]:
    if not profile.advice:
        yield _("nothing stands out")
    for i, one in enumerate(profile.advice, 1):
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
    pairs += [
        (_(name), profile.parts.get(part, 0.0), other.parts.get(part, 0.0)) for part, name in PARTS.items()
    ]
    slower = (row for row in compared(profile, other)[:_MOST] if row["this"] > row["other"])
    pairs += [(row["operator"], row["this"], row["other"]) for row in slower]
    for name, this, that in pairs:
        if max(this, that) > 0.01 * profile.step:
            ratio = this / that if that else float("inf")
            said = N_("{name}: {this}, there {other} ({ratio:.2g} times)")
            yield _(said, name=name, this=_ms(this), other=_ms(that), ratio=ratio)


def _ms(time: float) -> str:
    return f"{time / 1000:.3g} ms"


def as_json(profile: Profile, rows: Rows, other: Optional[Profile]) -> dict[str, Any]:
    """All of it. ``docs/profile.md`` has the keys."""
    content = {"schema": 1, "npumigrate": __version__, **asdict(profile)}
    places = {place for one in profile.operators.values() for place in one.places}
    places.update(*(one.places for one in profile.advice))
    content["seen"] = {place: said for place in sorted(places) if (said := seen_at(rows, place))}
    if other:
        about = {"path": other.path, "step": other.step, "parts": other.parts}
        content["against"] = {**about, "operators": compared(profile, other)}
    return content
