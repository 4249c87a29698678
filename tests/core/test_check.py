"""Files that cannot be read as Python, and what a conversion alone changes."""

from __future__ import annotations

import ast
import gc
import sys
from dataclasses import replace
from typing import Any, cast

import pytest

from migrator.core.check import _NUL, Converted, _Check, _check_compiles, check, every_fix, no_fix, unparsed
from migrator.core.rules import Rules
from migrator.files.source import Source
from migrator.findings.finding import Edit, Finding, Fix, Result, SyntaxTrouble
from migrator.names.index import ModuleIndex
from migrator.names.tree import parse
from migrator.names.what_is import TENSOR, UNKNOWN, Value
from migrator.project.offers import MODULE, Offer, Offers
from migrator.project.project import Project
from tests.checking import document
from tests.matchers.migrating import engine, migrate

RUNNING = ".".join(map(str, sys.version_info[:2]))


def test_what_is_nested_too_deeply_is_left() -> None:
    result = migrate("import torch\nx = torch.cuda" + ".a" * 100_000 + "\n")
    reason = "an expression is nested too deeply to parse"
    assert (result.text, result.findings, result.skipped) == (None, (), reason)
    assert result.syntax == (SyntaxTrouble(0, reason),)


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("print 'x', torch.cuda\n", 2, "; Python 2 code? Convert it to Python 3 first"),
        ("match x:\n    torch.cuda.(\n", 3, "; syntax of a newer Python? Run npumigrate with that one"),
        ("x = torch.cuda.(\n", 2, ""),
    ],
)
def test_what_does_not_parse_is_left_with_its_line_and_a_hint(text: str, line: int, hint: str) -> None:
    result = migrate(f"import torch\n{text}")
    (trouble,) = result.syntax
    assert result.text is None
    assert result.skipped == f"line {line}: {trouble.message}"
    assert trouble.line == line
    assert trouble.message.startswith(f"not valid Python {RUNNING} (")
    assert trouble.message.endswith(f"){hint}")


def test_a_conversion_stays_where_no_rule_starts() -> None:
    converted = Converted("x = 1\n", (Edit(4, 5, "2"),))
    result = check(document("a.py", "x = 1\n"), engine("2.6"), Project(), converted=converted)
    assert result.text == converted.text == "x = 2\n"


def test_a_fix_that_waits_for_a_later_pass_has_its_edits_about_the_input() -> None:
    call = "torch.cuda.nvtx.range_push(torch.cuda.get_sync_debug_mode())"
    text = f"import torch\n{call}\n"
    found = check(document("a.py", text), engine("2.6"), Project(), write=False).findings
    edits = {finding.api: finding.fix.edits for finding in found if finding.fix}
    assert edits == {
        "torch_npu": (Edit(13, 13, "import torch_npu\n"),),
        "torch.cuda.nvtx.range_push": (Edit(13, len(text), ""),),
        "torch.cuda.get_sync_debug_mode": (Edit(46, 50, "npu"),),
    }


@pytest.mark.parametrize(
    ("name", "text", "left"),
    [
        ("c.yaml", "device: cuda\nx: [\n", "line 3: not parsed as yaml (did not find expected node content)"),
        ("c.json", '{"device": "cuda",\n "x": }\n', "line 2: not parsed as json ('}' is not expected here)"),
    ],
)
def test_another_file_that_is_not_of_its_type_is_left_with_the_reason(
    name: str, text: str, left: str
) -> None:
    result = check(document(name, text), engine("2.6"), Project())
    assert result == Result(name, left=f"{left}: left unchanged", type=name.rpartition(".")[2])


def test_another_file_is_marked_with_its_type_whether_or_not_a_rule_starts() -> None:
    changed = check(document("c.yaml", "backend: nccl\n"), engine("2.6"), Project())
    assert (changed.name, changed.type, changed.text) == ("c.yaml", "yaml", "backend: hccl\n")
    assert check(document("c.yaml", "x: 1\n"), engine("2.6"), Project()) == Result("c.yaml", type="yaml")


def test_a_file_with_a_null_byte_is_named() -> None:
    result = check(document("a.py", "import torch.cuda\0\n"), engine("2.6"), Project())
    assert result == Result("a.py", skipped="holds NUL bytes: not a Python source file")


def test_an_error_without_a_line_names_none() -> None:
    result = unparsed("a.py", "torch", SyntaxError("odd"))
    assert result.skipped == f"not valid Python {RUNNING} (odd)"
    assert result.syntax == (SyntaxTrouble(0, result.skipped),)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("x = (", "Missing parentheses in call to 'print'", "Python 2 code?"),
        ("  print x", "odd", "Python 2 code?"),
        ("try:\n    x\nexcept E , e :", "odd", "Python 2 code?"),
        ("print(x)\nprint = x", "odd", ""),
        ("match = x", "odd", ""),
        ("type X = int", "odd", "syntax of a newer Python?"),
        ("except* E:", "odd", "syntax of a newer Python?"),
        ("a\n  case 1 if y:", "odd", "syntax of a newer Python?"),
    ],
)
def test_what_a_text_looks_like(text: str, message: str, hint: str) -> None:
    skipped = unparsed("a.py", text, SyntaxError(message, ("a.py", 7, 1, text))).skipped
    assert skipped.startswith(f"line 7: not valid Python {RUNNING} ({message})")
    assert ("; " in skipped) == bool(hint)
    assert hint in skipped


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_is_looked_for_afterwards_as_before(collecting: bool) -> None:
    was = gc.isenabled()
    (gc.enable if collecting else gc.disable)()
    try:
        check(document("a.py", "import torch\ntorch.cuda.synchronize()\n"), engine("2.6"), Project())
        assert gc.isenabled() == collecting
    finally:
        (gc.enable if was else gc.disable)()


def test_what_is_found_without_fixes_leaves_the_text() -> None:
    item = document("a.py", "import torch\ntorch.cuda.synchronize()\n")
    result = check(item, engine("2.6"), Project(), no_fix)
    assert result.text is None
    assert [(finding.code, finding.fixed) for finding in result.findings] == [("NPU101", False)]


@pytest.mark.parametrize("text", ["x = 1\n", "print 'x'\n", "import torch\nx = torch.cuda" + ".a" * 100_000])
def test_what_comes_of_a_file_has_its_name(text: str) -> None:
    assert check(document("a.py", text), engine("2.6"), Project()).name == "a.py"
    assert unparsed("a.py", text, SyntaxError("odd")).name == "a.py"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        # older Pythons than 3.11.4 raise this for a null byte
        (ValueError("source code string cannot contain null bytes"), _NUL),
        (ValueError("odd"), "internal error, file left unchanged: ValueError('odd')"),
        (TypeError("null byte"), "internal error, file left unchanged: TypeError('null byte')"),
    ],
)
def test_an_error_stays_in_its_file(error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_text: str, _rules: Rules) -> None:
        raise error

    monkeypatch.setattr("migrator.core.check.check_names", fail)
    result = check(document("a.py", "import torch\n"), engine("2.6"), Project())
    assert (result.name, result.text, result.skipped) == ("a.py", None, reason)
    assert ("check_names" in result.trace) == (reason != _NUL)


def test_rules_that_do_not_settle_leave_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import torch\ntorch.cuda.nvtx.range_push(torch.cuda.get_sync_debug_mode())\n"
    assert migrate(text).text == "import torch\nimport torch_npu\n"
    monkeypatch.setattr("migrator.core.check._MAX_PASSES", 1)
    reason = "internal error, file left unchanged: the rules do not reach a fixed point"
    assert migrate(text) == Result("example.py", skipped=reason)


def test_the_changes_of_all_passes_are_told() -> None:
    found = migrate("import torch\ntorch.cuda.nvtx.range_push(torch.cuda.get_sync_debug_mode())\n").findings
    assert [(finding.api, finding.fixed, finding.column, finding.end_column) for finding in found] == [
        ("torch_npu", True, 1, 13),
        ("torch.cuda.nvtx.range_push", True, 1, 61),
        ("torch.cuda.get_sync_debug_mode", True, 28, 58),
    ]


def test_a_mistake_of_ours_is_told_from_one_in_the_input() -> None:
    fine, bad = document("a.py", "x = 1\n"), document("a.py", "return 1\n")
    _check_compiles(fine, Result("a.py"))
    _check_compiles(fine, Result("a.py", text="x = 2\n"))
    with pytest.raises(SyntaxError):
        _check_compiles(bad, Result("a.py"), parse(bad.text))
    for item, made in ((fine, "\nreturn\n"), (bad, None), (bad, "\nreturn\n")):
        with pytest.raises(SyntaxError) as raised:
            _check_compiles(item, Result("a.py", text=made))
        assert raised.value.lineno == (2 if item is fine else 1)


def test_a_file_of_a_type_that_has_no_reader_is_only_marked() -> None:
    item = document("a.yaml", "backend: nccl\n")
    item = replace(item, content=Source("a.yaml", item.text, type="other"))
    assert check(item, engine("2.6"), Project()) == Result("a.yaml", type="other")


def test_where_no_line_is_known_none_is_told() -> None:
    result = check(document("Dockerfile", "pytorch/pytorch:2.1.0\n"), engine("2.6"), Project())
    assert result.left == "not parsed as dockerfile (no instruction): left unchanged"


def test_another_file_may_stand_for_torch() -> None:
    text = "from other0 import th\nth.cuda.synchronize()\n"
    expected = "from other0 import th\nimport torch_npu\nth.npu.synchronize()\n"
    assert migrate(text, others=("import torch as th\n",)).text == expected
    assert migrate(text).text is None
    project = Project(offers=Offers(frozenset({Offer(MODULE, "acme.other.th", detail=("torch",))})))
    relative = text.replace("other0", ".other")  # whose name goes by that of the file
    inside = check(document("acme/a.py", relative), engine("2.6"), project)
    assert inside.text == expected.replace("other0", ".other")
    assert check(document("more/a.py", relative), engine("2.6"), project).text is None


class _Asked:
    """In the place of ``Definitions``: everything in ``a.py`` is a tensor."""

    def kind_of(self, file: str, index: ModuleIndex, node: ast.AST) -> Value:
        return Value(TENSOR if file == "a.py" and index.segment(node) else UNKNOWN)


def test_the_definitions_of_other_files_are_asked() -> None:
    text = "import torch\nfrom acme import batch\nbatch.mode()\n"
    project = Project(definitions=cast(Any, _Asked()))
    for name, given, certain in (
        ("a.py", project, True),
        ("b.py", project, False),
        ("a.py", Project(), False),
    ):
        found = check(document(name, text), engine("2.6"), given).findings
        assert [finding.code for finding in found if finding.severity != "info"] == ["NPU501"] * certain


def test_findings_are_for_the_hardware() -> None:
    image = "FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime\n"
    for hardware, product in (("", "910b"), ("A2", "910b"), ("A3", "a3")):
        result = check(document("Dockerfile", image), engine("2.6", hardware=hardware), Project())
        assert result.text is not None
        assert f"-{product}-" in result.text
        assert "torch_npu==2.6.0" in result.text
        assert result.left_alone == 0


def test_what_is_admitted_is_asked_with_its_place_in_the_input() -> None:
    text = "import torch\ntorch.cuda.nvtx.range_push(torch.cuda.get_sync_debug_mode())\n"
    asked: list[tuple[str, int, int]] = []

    def admit(finding: Finding) -> bool:
        asked.append((finding.api, finding.line, finding.column))
        return True

    check(document("a.py", text), engine("2.6"), Project(), admit)
    assert ("torch.cuda.nvtx.range_push", 2, 1) in asked
    assert {line for _, line, _ in asked} == {2}


BEFORE = "import torch\nbefore()\ntorch.cuda.synchronize()\n"
CONVERTED = Converted(
    BEFORE,
    (Edit(13, 21, "first()\nsecond()"),),
    (Finding("NPU700", "m", 2, 1, 2, 9, fix=Fix((), "safe", made=True)),),
)


def test_what_rules_fix_in_a_converted_text_is_told_about_the_input() -> None:
    result = check(document("a.py", BEFORE), engine("2.6"), Project(), converted=CONVERTED)
    assert result.text == "import torch\nimport torch_npu\nfirst()\nsecond()\ntorch.npu.synchronize()\n"
    imported, converted, call = result.findings
    assert imported.fix
    assert (imported.code, imported.line, imported.fix.after) == ("NPU901", 1, "import torch_npu")
    assert converted.fix
    assert (converted.code, converted.fix.before) == ("NPU700", "before()")
    assert converted.fix.after == "import torch_npu\nfirst()\nsecond()"
    assert (call.code, call.start, call.end, call.span) == ("NPU101", (3, 1), (3, 23), (22, 44))


def test_of_a_converted_text_fixes_have_no_edits_about_the_input() -> None:
    item = document("a.py", BEFORE)
    found = check(item, engine("2.6"), Project(), converted=CONVERTED, write=False).findings
    assert [(finding.code, finding.fix) for finding in found] == [
        ("NPU901", Fix((), "safe", "INSERT")),
        ("NPU101", Fix((), "safe")),
    ]


def test_what_a_fix_inserted_is_told_from_a_place_without_width() -> None:
    way = _Check(document("a.py", "one\ntwo\n"), engine("2.6"), Project(), every_fix)
    way.map = way.map.then([Edit(4, 4, "more\n")])
    for span, inserted in (((4, 8), True), ((9, 12), False), ((4, 4), False), ((0, 0), False)):
        assert way._is_inserted(Finding("NPU101", "m", 1, 1, 1, 1, span=span)) is inserted


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # another rule starts from what the first fix has written
        ("x = torch.get_autocast_gpu_dtype()\n", 'x = torch.get_autocast_dtype("npu")\n'),
        # what was torch_npu.distributed is known to the rules as torch.distributed only then
        ("x = torch_npu.distributed.Backend.NCCL\n", "x = torch.distributed.Backend.HCCL\n"),
    ],
)
def test_a_result_is_looked_at_again_where_rules_start_from_it(before: str, after: str) -> None:
    result = migrate(f"import torch\nimport torch_npu\n{before}")
    assert result.text == f"import torch\nimport torch_npu\n{after}"


def test_where_rules_start_from_is_not_joined_with_an_import() -> None:
    text = migrate("import torch\nx = torch.get_autocast_gpu_dtype()\n").text
    assert text == 'import torch\nimport torch_npu\nx = torch.get_autocast_dtype("npu")\n'


def test_places_are_those_of_the_input_where_a_conversion_moved_them() -> None:
    before = "import torch\na(); torch.cuda.synchronize()\n"
    added = Finding("NPU700", "m", 1, 1, 1, 2, fix=Fix((), "safe", "INSERT", after="import a\n"))
    converted = Converted(before, (Edit(0, 0, "from acme import a\n"), Edit(13, 14, "first")), (added,))
    result = check(document("a.py", before), engine("2.6"), Project(), converted=converted)
    places = {(item.code, item.start, item.end) for item in result.findings}
    assert places >= {("NPU901", (1, 1), (1, 13)), ("NPU101", (2, 6), (2, 28))}
    (inserted,) = [item.fix for item in result.findings if item.code == "NPU700"]
    assert inserted
    assert inserted.after == "from acme import a"  # the whole line that has it


CLONED = "import torch\nwindow = torch._foreach_clone(3)\n"


def unknown(edit: Edit) -> list[int]:
    """The lines of NPU504 (nothing is known of _foreach_clone)."""
    converted = Converted(CLONED, (edit,))
    result = check(
        document("example.py", CLONED), engine("2.6", select=("NPU504",)), Project(), converted=converted
    )
    return [finding.line for finding in result.findings if finding.code == "NPU504"]


def test_what_a_conversion_wrote_is_no_finding() -> None:
    assert unknown(Edit(13, 13, "other = torch._foreach_clone(4)\n")) == [2]


def test_what_a_conversion_kept_is_one() -> None:
    assert unknown(Edit(13, len(CLONED) - 1, "if window:\n    window = torch._foreach_clone(3)")) == [2]
