"""Which findings stay beside the fixes that are made."""

from __future__ import annotations

import pytest

from migrator.project.project import Project
from tests.checking import migrate_text
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
    found = [
        (finding.severity, finding.fixed)
        for finding in migrate_text(engine("2.6"), "sft.yaml", text, project).findings
        if finding.code == "NPU677"
    ]
    assert found == ([(severity, fixed)] if severity else [])
