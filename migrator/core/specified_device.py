"""--specify-device: the environment variable DEVICE_ID chooses the NPU of a program that has one."""

from __future__ import annotations

import ast

from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, insertion
from migrator.matchers.entry import is_entry
from migrator.matchers.npu_import import imports_package
from migrator.matchers.packs import Rule
from migrator.names.statements import head_lines

_VARIABLE = "DEVICE_ID"
# A rank has its NPU from the launcher. The variable counts before the first use of an NPU: above all imports.
_STATEMENTS = (
    "import os",
    'if "DEVICE_ID" in os.environ and os.environ.keys().isdisjoint({"LOCAL_RANK", "RANK", "RANK_ID"}):',
    '    os.environ.setdefault("ASCEND_RT_VISIBLE_DEVICES", os.environ["DEVICE_ID"])',
)


def find(context: FileContext, rule: Rule) -> list[Match]:
    """The statements for a file that is started and imports torch; none where it has the variable."""
    index = context.index
    if not imports_package(index, "torch") or not is_entry(context) or _VARIABLE in index.text:
        return []
    docstring = ast.get_docstring(index.tree, clean=False) is not None
    body = index.tree.body[1 if docstring else 0 :]
    # There is one: the file imports torch.
    first = next(node for node in body if getattr(node, "module", "") != "__future__")
    begin, _ = index.line_span(*[head_lines(first)[0]] * 2)
    edit = Edit(begin, begin, "".join(line + newline_of(index.text) for line in _STATEMENTS))
    return [insertion(context, rule, first, edit, api=_VARIABLE)]
