"""Shapes that came after the first step, where they come from, and the vendor's table of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

from migrator.insight.operator_names import names_of, shown
from migrator.insight.recorded import FORWARD, Record, Recorded, most_steps
from migrator.insight.rows import Row, Run, tallies, text
from migrator.language import _

KIND = "dynamic_shape"


def by_values(record: Record) -> bool:
    """Whether the size of the result depends on the values of a tensor."""
    return record.name in names_of("sized_by_values") or (record.by_truth and record.name == "index")


def find(run: Run) -> Iterator[Row]:
    """A row for each operator and place from which new shapes come."""
    steps = most_steps(run.processes)

    def key(record: Record) -> Optional[Sequence[str]]:
        begins = record.phase == FORWARD and record.origins and record.place and not record.place.through
        # In one step only: a smaller last batch, an evaluation, a wrapper that is warming up.
        begins = begins and (record.changed_in > 1 or (steps == 2 and record.changed_in > 0))
        return [record.operator, _origin(record)] if begins else None

    behind = sum(
        record.changed_in > 0 and not record.origins
        for process in run.processes[:1]
        for record in process.records
    )
    for (operator, origin), tally in tallies(run, key):
        most = max(tally.records, key=lambda record: record.changed_in)
        api, new = shown(operator, run.version), most.changed_in
        words = {"api": api, "new": new, "steps": steps - 1, "shapes": most.shapes, "example": _example(most)}
        message = text(KIND, "changed", **words, origin=text(KIND, origin))
        if behind:
            message += f"; {text(KIND, 'behind', count=behind)}"
        more = {"origin": origin, "shapes": most.shapes, "new_steps": new, "examples": most.examples[:8]}
        yield tally.row(KIND, "warning", api, message, text(KIND, f"advice_{origin}"), new, **more)


def _origin(record: Record) -> str:
    if record.crossing.startswith("to_npu"):
        return "from_host"
    return "from_values" if by_values(record) else "from_program"


def _example(record: Record) -> str:
    late = record.examples[max(1, record.first_shapes) :] or record.examples[-1:]
    return _("{examples}, then {late}", examples=record.examples[0], late=late[0])


def vendor_rows(run: Run) -> Iterator[Mapping[str, Any]]:
    """The rows of ``msft_dynamic_shape_analysis_report.csv``: operators whose shapes changed."""
    written = set()
    for process in run.processes[:1]:
        for record in _changed(process):
            assert record.place is not None
            taken, given = _ranges(record)
            row = {
                "function": shown(record.operator, run.version),
                "file": record.place.file,
                "line": record.place.line,
                "stack": [f"<{frame}>" for frame in record.stack],
                "inputs": taken,
                "outputs": given,
                "severity": "info",
            }
            key = (row["function"], row["file"], row["line"], taken, given)
            if key not in written:  # with another type, or forward and backward
                written.add(key)
                yield row


def _changed(process: Recorded) -> list[Record]:
    found = [r for r in process.records if r.changed_in and r.place and not r.place.through]
    return sorted(found, key=lambda record: -record.changed_in)


def _ranges(record: Record) -> tuple[str, str]:
    """From the smallest to the largest size of each argument and result, by the number of its dimensions."""
    sides: tuple[list[dict[int, list[tuple[int, ...]]]], list[dict[int, list[tuple[int, ...]]]]] = ([], [])
    for example in record.examples:
        for side, shapes in zip(sides, example.split(">")):
            for i, shape in enumerate(shapes.split()):
                sizes = tuple(int(size) for size in shape.split("x")) if shape != "()" else ()
                while len(side) <= i:
                    side.append({})
                side[i].setdefault(len(sizes), []).append(sizes)
    taken, given = ([_range(each) for each in side] for side in sides)
    return ", ".join(taken) or "None", ", ".join(given) or "None"


def _range(by_dims: Mapping[int, Sequence[tuple[int, ...]]]) -> str:
    parts = [
        f"{tuple(map(min, zip(*sizes)))}-{tuple(map(max, zip(*sizes)))}"
        for dims, sizes in sorted(by_dims.items())
        if dims
    ]
    return f"[{' | '.join(parts)}]" if parts else "[()]"
