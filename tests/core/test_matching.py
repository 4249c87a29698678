"""Which findings stay beside the fixes that are made."""

from __future__ import annotations

import ast
import sys

import pytest

from migrator.core.check import every_fix, no_fix
from migrator.core.matching import _fitting, _in_order, _is_settled, choose_fixes_in_text
from migrator.files.naming import EQUIVALENTS
from migrator.findings.finding import Edit, Finding, Fix
from migrator.matchers.context import Match
from migrator.project.added_package import Place
from migrator.project.project import Project
from tests.checking import check_text, migrate_text
from tests.matchers.migrating import engine, migrate

OUTSIDE = (
    "import torch\nargs = parser.parse_args()\n"
    "if __name__ == '__main__':\n    device = torch.device(args.device)\n"
)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        # the call is taken out, and with it what is unsupported
        ("torch.cuda.nvtx.range_push(torch.cuda.acme())", ["NPU101"]),
        ("if x:\n    torch.cuda.nvtx.range_push(torch.cuda.acme())", ["NPU101"]),  # pass stands there
        # what the claimed call holds is left for who looks at the call
        (
            "torch.set_default_tensor_type(torch.cuda.FloatTensor if torch.cuda.is_available() else f)",
            ["NPU151"],
        ),
        # a fix elsewhere in the file says nothing about a string
        ("print(torch.cuda.is_available())\nflavours = build('cuda')", ["NPU101", "NPU123", "NPU901"]),
        ("flavours = build('cuda')\nprint(torch.cuda.is_available())", ["NPU101", "NPU123", "NPU901"]),
        # but one that takes the string itself does
        (
            "class Batch:\n    def cuda(self):\n        return self.x.cuda()\n"
            "    def to(self, device):\n        return self\n    moves = ['to', 'cuda']",
            ["NPU111", "NPU114", "NPU114", "NPU901"],
        ),
    ],
)
def test_what_is_told_beside_a_fix(text: str, codes: list[str]) -> None:
    found = migrate(f"import torch\n{text}\n").findings
    assert sorted(finding.code for finding in found) == codes


@pytest.mark.parametrize(
    ("more", "codes"), [("", ["NPU903"]), ("    torch.cuda.synchronize()\n", ["NPU901", "NPU101"])]
)
def test_an_import_for_itself_goes_where_a_fix_brings_it(more: str, codes: list[str]) -> None:
    result = migrate(OUTSIDE + more, "2.1")
    assert [finding.code for finding in result.findings] == codes
    assert (result.text or "").count("import torch_npu") == 1


@pytest.mark.parametrize(
    ("requirements", "severity", "fixed"),
    [
        ((), "warning", False),
        (("numpy<2",), "warning", False),
        (("transformers==4.46.3",), "error", True),
        (("transformers >=4.40, <4.50",), "error", True),
        (("transformers>=4.51",), "", False),
    ],
)
def test_a_rule_for_some_versions_of_a_library(
    requirements: tuple[str, ...], severity: str, fixed: bool
) -> None:
    text = "attn_implementation: flash_attention_2\n"
    project = Project(requirements=requirements)
    call = 'def load(M):\n    return M.from_pretrained("a", attn_implementation="flash_attention_2")\n'
    for name, content in (("sft.yaml", text), ("train.py", call)):
        found = migrate_text(engine("2.6"), name, content, project).findings
        assert [(each.severity, each.fixed) for each in found] == [(severity, fixed)] * bool(severity)
        reason = "; left unchanged: the requirements do not say whether it is transformers <4.51"
        assert all(each.message.endswith(reason) != fixed for each in found)


def test_no_string_is_left_alone_where_none_is_looked_at() -> None:
    assert migrate("import torch\nx = {'cuda': 1}\n", select=("NPU101",)).left_alone == 0
    assert migrate("import torch\nx = {'cuda': torch.cuda}\n", select=("NPU1",)).left_alone == 1


@pytest.mark.parametrize(
    ("text", "version", "expected"),
    [
        ("import torch\nmodel.to('cuda')\n", "2.6", "import torch\nimport torch_npu\nmodel.to('npu')\n"),
        # a string alone does not make a file one of torch
        ("def f(model):\n    model.to('cuda')\n", "2.6", "def f(model):\n    model.to('npu')\n"),
        # before 2.1 torch_npu replaces names of torch when it is imported
        (
            "from torch import nn\nnn.ReLU().cuda()\n",
            "1.11",
            "import torch_npu\nfrom torch import nn\nnn.ReLU().npu()\n",
        ),
        (
            "from torch import nn\nnn.ReLU().cuda()\n",
            "2.6",
            "from torch import nn\nimport torch_npu\nnn.ReLU().npu()\n",
        ),
    ],
)
def test_where_the_import_goes(text: str, version: str, expected: str | None) -> None:
    assert migrate(text, version).text == expected


def test_an_argument_of_torch_by_another_files_name_brings_no_import() -> None:
    text, other = "from other0 import th\nscaler = th.amp.GradScaler()\n", "import torch as th\n"
    result = migrate(text, others=(other,))
    assert result.text == text.replace("()", '(device="npu")')
    assert [finding.code for finding in result.findings] == ["NPU141"]


def test_a_fix_has_the_import_that_it_needs() -> None:
    text = "import os\nimport torch\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\ntorch.cuda.synchronize()\n"
    found = check_text(engine("2.6"), "a.py", text, Project()).findings
    needed = Edit(23, 23, "import torch_npu\n")
    assert [(each.code, each.fix.edits, each.fix.imports) for each in found if each.fix] == [
        ("NPU901", (needed,), ()),
        ("NPU401", (Edit(35, 55, "ASCEND_RT_VISIBLE_DEVICES"),), ()),
        ("NPU101", (Edit(70, 74, "npu"),), (needed,)),
    ]


def _match(start: int, end: int, text: str | None = "", claims: tuple[int, int] | None = None) -> Match:
    fix = None if text is None else Fix((Edit(start, end, text),), "safe")
    finding = Finding("NPU101", "m", 1, 1, 1, 1, api="a", fix=fix, span=(start, end))
    return Match(finding, ast.Pass(), False, claims)


def test_which_fixes_go_together() -> None:
    claiming = _match(10, 20, None, claims=(10, 20))
    inside = [_match(10, 12), _match(12, 18), _match(18, 20)]
    beside = [_match(0, 9), _match(9, 11), _match(19, 21), _match(30, 32)]
    overlapping = _match(31, 33)
    matches = [claiming, *inside, *beside, overlapping]
    assert _fitting(matches, every_fix) == (beside, [claiming], [*inside, overlapping])
    assert _fitting(matches, no_fix) == ([], [claiming, *beside, overlapping], inside)
    choice = choose_fixes_in_text(matches, every_fix)
    assert choice.made == [item.finding for item in beside]
    assert choice.reported == [claiming.finding]
    assert choice.waiting == [item.finding for item in (*inside, overlapping)]
    assert choice.edits() == [edit for item in beside for edit in item.edits]


@pytest.mark.parametrize(
    ("code", "span", "settled"),
    [
        ("NPU101", (10, 20), True),  # taken out, in whole or in part
        ("NPU101", (12, 18), True),
        ("NPU101", (9, 20), False),
        ("NPU101", (10, 21), False),
        ("NPU101", (15, 15), False),  # nothing of it is taken out
        ("NPU101", (50, 60), True),  # it is written anew, with another finding
        ("NPU101", (30, 40), False),
        ("NPU123", (30, 40), True),  # what was unclear is written anew
        ("NPU123", (29, 41), True),
        ("NPU123", (31, 40), False),
        ("NPU123", (30, 39), False),
    ],
)
def test_a_report_is_moot_where_a_fix_settles_it(code: str, span: tuple[int, int], settled: bool) -> None:
    finding = _match(*span, text=None).finding._replace(code=code)
    removal, change = Edit(10, 20, ""), Edit(30, 40, "npu")
    item = Match(finding, ast.Pass(), False)
    replaced = {("a", (50, 60)), ("b", (30, 40))}
    assert _is_settled(item, [removal, change], [removal], replaced, engine("2.6")) is settled


def test_what_is_written_anew_is_not_reported_too() -> None:
    text = "import torch\nfrom data import ones\nx = torch.mode(ones)\n"
    rules = engine("2.6", select=("ALL", "NPU550"))
    for added, codes in (({}, ["NPU502", "NPU550"]), ({EQUIVALENTS: "own"}, ["NPU550"])):
        project = Project(added=added, places={"a.py": Place("")})
        found = migrate_text(rules, "a.py", text, project).findings
        assert [each.code for each in found if each.api == "torch.mode"] == codes


def test_what_a_rule_that_is_looked_at_by_itself_is_about_is_its_own() -> None:
    rules = engine("2.6")
    name, alone, less = (
        _match(0, 4)._replace(finding=_match(0, 4).finding._replace(code=code, api=api))
        for code, api in (
            ("NPU101", "torch.cuda.amp.GradScaler"),
            ("NPU530", "torch.cuda.amp"),
            ("NPU101", "torch.cuda"),
        )
    )
    assert rules.every["NPU530"].finder.each
    assert _in_order([less, name, alone], rules)[0] == alone


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="an f-string may hold its own quotes")
def test_a_fix_that_does_not_fit_into_an_f_string_is_reported() -> None:
    inner = "f\"{f'{torch.is_autocast_enabled()}'}\""
    result = migrate(f"import torch\nprint({inner})\ntorch.cuda.synchronize()\n")
    assert result.text == f"import torch\nimport torch_npu\nprint({inner})\ntorch.npu.synchronize()\n"
    (left,) = [each for each in result.findings if not each.fixed]
    assert (left.code, left.severity, left.fix) == ("NPU311", "warning", None)
    assert left.message.endswith("; left unchanged: the new string does not fit into the f-string")
    assert [each.code for each in result.findings] == ["NPU901", "NPU311", "NPU101"]
