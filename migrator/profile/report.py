"""A profile for people, as text or Markdown, and for programs, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from migrator import __version__
from migrator.insight.rows import size
from migrator.language import N_, _
from migrator.profile.advice import Advice, Rows, seen_at
from migrator.profile.model import PARTS, Operator, Profile

SCHEMA = 1
_MOST = 5
_PARTS = {
    "compute": N_("computing"),
    "communication": N_("communication"),
    "bubble": N_("pipeline bubbles"),
    "data": N_("data loading"),
    "fallback": N_("CPU fallback"),
    "host": N_("waiting for the host"),
}


def lines(
    profile: Profile, found: Sequence[Advice], rows: Rows, other: Profile | None
) -> Iterator[tuple[str, list[str]]]:
    """The blocks of a report: a heading, and its lines."""
    if profile.emulated:
        said = N_("The NPU was emulated: all times are the CPU's, and say nothing of an NPU's speed.")
        yield _("Emulated"), [_(said)]
    if profile.steps:
        yield _("Step"), list(_step(profile))
        yield _("Costs most"), list(_costs(profile, rows))
    if other:
        yield _("Compared with {path}", path=other.path), list(_compared(profile, other))
    for memory in profile.memory:
        told = [
            _(
                "peak {peak}, reserved {reserved}",
                peak=size(memory.allocated),
                reserved=size(memory.reserved),
            ),
            *(f"{size(one.device)}  {one.name} {one.place}".rstrip() for one in memory.holders[:_MOST]),
        ]
        modules = sorted(memory.modules.items(), key=lambda each: -each[1])[:3]
        if modules:
            told.append(_("by module: ") + ", ".join(f"{name} {size(held)}" for name, held in modules))
        yield _("Memory of {device}", device=memory.device), told
    yield _("What to change"), list(_advised(found)) or [_("nothing stands out")]
    if profile.notes:
        yield _("Notes"), list(profile.notes)


def _step(profile: Profile) -> Iterator[str]:
    time, steps = _ms(profile.step), profile.steps
    if profile.whole:
        yield _(
            "{time}: all that was recorded, as no steps are marked (call step() with a schedule)", time=time
        )
    else:
        yield _("{time}, the mean of {steps} steps", time=time, steps=steps)
    for part in sorted(profile.parts, key=lambda part: (-profile.parts[part], PARTS.index(part))):
        spent = profile.parts[part]
        if spent > 0:
            yield f"{spent / profile.step:5.1%}  {_ms(spent):>10}  {_(_PARTS[part])}"


def _costs(profile: Profile, rows: Rows) -> Iterator[str]:
    for one in costly(profile.kernels)[:3]:
        yield _(
            "kernel {name}: {time}, {calls:.0f} calls",
            name=f"{one.name} {one.kind}".strip(),
            time=_ms(one.device),
            calls=one.calls,
        )
    for one in costly(profile.operators)[:3]:
        time = _ms(one.device) if one.device else _("{time} of the host", time=_ms(one.host))
        yield _("operator {name}: {time}, {calls:.0f} calls", name=one.name, time=time, calls=one.calls) + (
            f"  {one.place}" if one.place else ""
        )
        yield from (f"  {line}" for line in seen_at(rows, one.place))


def costly(found: dict[str, Operator]) -> list[Operator]:
    """Operators by their time on the device, or on the host where none has any."""
    return sorted(found.values(), key=lambda one: (-one.device, -one.host, one.name))


def _advised(found: Sequence[Advice]) -> Iterator[str]:
    for i, one in enumerate(found, 1):
        gain = size(one.gain) if one.unit == "bytes" else _ms(one.gain)
        up_to = _("up to {gain} ({share:.0%}): ", gain=gain, share=one.share) if one.gain else ""
        yield f"{i}. {up_to}{one.what}"
        yield f"   {one.do}"
        yield from (f"   {place}" for place in one.places)
        yield from (f"   {line}" for line in one.seen)


def compared(profile: Profile, other: Profile) -> list[dict[str, Any]]:
    """Operators of both profiles by how much more time the first one takes for them in a step."""
    found = [
        {"operator": name, "this": one.device, "other": there.device}
        for name, one in profile.operators.items()
        if (there := other.operators.get(name)) and (one.device or there.device)
    ]
    return sorted(found, key=lambda each: each["other"] - each["this"])


def _compared(profile: Profile, other: Profile) -> Iterator[str]:
    yield _("step: {this}, there {other} ({ratio:.2g} times)", **_times(profile.step, other.step))
    for part in PARTS:
        this, that = profile.parts.get(part, 0.0), other.parts.get(part, 0.0)
        if max(this, that) > 0.01 * profile.step:
            yield f"{_(_PARTS[part])}: " + _(
                "{this}, there {other} ({ratio:.2g} times)", **_times(this, that)
            )
    for row in compared(profile, other)[:_MOST]:
        if row["this"] > row["other"]:
            yield f"{row['operator']}: " + _(
                "{this}, there {other} ({ratio:.2g} times)", **_times(row["this"], row["other"])
            )


def _times(this: float, other: float) -> dict[str, Any]:
    return {"this": _ms(this), "other": _ms(other), "ratio": this / other if other else float("inf")}


def _ms(time: float) -> str:
    return f"{time / 1000:.3g} ms"


def as_text(profile: Profile, blocks: Iterator[tuple[str, list[str]]], markdown: bool) -> str:
    """The report, each block under its heading."""
    head = f"{profile.path}" + (f" ({_('rank')} {profile.rank})" if profile.rank else "")
    told = [f"# {head}" if markdown else head]
    for heading, body in blocks:
        if markdown:
            told += [
                "",
                f"## {heading}",
                "",
                *(f"- {line.strip()}" if line[:1] != " " else f"  {line.strip()}" for line in body),
            ]
        else:
            told += [heading, *(f"  {line}" for line in body)]
    return "\n".join(told)


def as_json(profile: Profile, found: Sequence[Advice], other: Profile | None) -> dict[str, Any]:
    """All of it. ``docs/profile.md`` has the keys."""

    def operators(each: dict[str, Operator]) -> list[dict[str, Any]]:
        return [asdict(one) for one in costly(each)[:50]]

    return {
        "schema": SCHEMA,
        "npumigrate": __version__,
        "profile": profile.path,
        "rank": profile.rank,
        "device": profile.device,
        "emulated": profile.emulated,
        "steps": profile.steps,
        "step_us": profile.step,
        "parts_us": profile.parts,
        "operators": operators(profile.operators),
        "kernels": operators(profile.kernels),
        "memory": [asdict(memory) for memory in profile.memory],
        "advice": [asdict(one) for one in found],
        "against": other
        and {
            "profile": other.path,
            "step_us": other.step,
            "parts_us": other.parts,
            "operators": compared(profile, other)[:50],
        },
        "notes": profile.notes,
    }
