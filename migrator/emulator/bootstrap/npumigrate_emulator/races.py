"""Says where streams touch the same memory without waiting for each other: ``emulate --races``.

torch_npu's own detector finds them (``torch_npu.npu._sanitizer``), which follows its streams and events. It
prints whole stacks and raises at the first; here the program goes on, and each pair of lines is named once.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from traceback import StackSummary
from typing import Any, Optional

from npumigrate_emulator.shapes import is_installed


def begin() -> None:
    """Start the detector, as TORCH_NPU_SANITIZER does, and say here what it finds.

    torch_npu must be imported.
    """
    from torch_npu.npu import _sanitizer

    found: Any = _sanitizer.npu_sanitizer
    if not found.enabled:
        found.opp_debug_kernel_path = None  # with a path it would look at kernels instead
        found.enable()
    handler: Any = found.event_handler
    detector: Any = type(handler)

    class Saying(detector):  # type: ignore[misc]  # its class depends on the version
        """What torch_npu's callbacks were given, with its errors said."""

        def _handle_kernel_launch(self, *args: Any, **options: Any) -> list[Any]:
            for error in super()._handle_kernel_launch(*args, **options):
                now, before = error.current_access, error.previous_access
                does, did = _KINDS[now.type.name][0], _KINDS[before.type.name][1]
                _say(
                    f"{_place(now.stack_trace)} ({_operator(now.operator)}) {does} on one stream what "
                    f"{_place(before.stack_trace)} ({_operator(before.operator)}) {did} on another, and "
                    "does not wait for it: wait_stream or an event is missing"
                )
            return []

        def _get_record_stream_errors(self, data: Any) -> list[Any]:
            for error in super()._get_record_stream_errors(data):
                usage = error.usage
                _say(
                    f"{_place(usage.stack_trace)} ({_operator(usage.operator)}) uses on one stream what "
                    f"{_place(error.allocation_stack_trace)} made on another, which may reuse its memory too "
                    "early: record_stream or a wait before it is freed is missing"
                )
            return []

    handler.__class__ = Saying


_KINDS = {"READ": ("reads", "read"), "WRITE": ("writes", "wrote")}


@cache
def _say(line: str) -> None:
    print(f"npumigrate emulate --races: {line}", file=sys.stderr, flush=True)


def _operator(schema: str) -> str:
    return schema.partition("(")[0]


def _place(stack: Optional[StackSummary]) -> str:
    """The innermost line of the program's own, as ``file:line``."""
    for frame in reversed(stack or ()):
        if not is_installed(frame.filename):
            return f"{os.path.relpath(frame.filename)}:{frame.lineno}"
    return "an unknown line"
