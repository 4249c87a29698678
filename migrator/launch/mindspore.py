"""The script that starts a program of MindSpore on NPUs, by msrun or by HCCL's rank table.

The template is ``reports/launcher/run_mindspore_npu.sh``. What msrun and MindSpore read:
``parallel/cluster`` and ``communication/management.py`` of MindSpore 2.10.
"""

from __future__ import annotations

import shlex

from migrator.launch.target import Launch, filled

NAME = "run_mindspore_npu.sh"


def start_script(entry: str) -> Launch:
    """The script for the project's folder that starts the ranks of ``entry``."""
    shown = "".join(char if char.isprintable() else "?" for char in entry)
    return Launch({NAME: filled(NAME, {"@NAME@": shown, "@ENTRY@": shlex.quote(entry)})})
