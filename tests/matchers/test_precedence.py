"""Which of several rules a name belongs to: docs/rule_format.md states the order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import load_pack, migrate_text

Migrated = Callable[..., tuple[str, set[str]]]


@pytest.fixture
def migrated(tmp_path: Path) -> Migrated:
    def run(text: str, *packs: str) -> tuple[str, set[str]]:
        """The migrated text, and the codes of what was found."""
        files = []
        for number, pack in enumerate(packs):
            files.append(tmp_path / f"{number}.yaml")
            files[-1].write_text(pack)
        engine = Rules(Settings(version="2.6", rule_files=tuple(map(str, files))), load_pack)
        result = migrate_text(engine, "a.py", text, merge_facts([scan_file("a.py", text)]))
        return result.text or text, {finding.code for finding in result.findings} - {"NPU901"}

    return run


def rule(code: str, match: str, replace: str = "", kind: str = "name", more: str = "") -> str:
    new = f", replace: {replace}, fix: safe" if replace else ""
    names = f"code: {code}, name: {code.lower()}, summary: s"
    what = kind if ":" in kind else f"kind: {kind}"
    return f"- {{{names}, {what}, match: '{match}'{new}{more}}}\n"


USES = ["import torch\ntorch.cuda.foo()\n", "from torch.cuda import foo\nfoo()\n"]


@pytest.mark.parametrize("code", ["ACME101", "ZED101"])
@pytest.mark.parametrize("text", USES)
def test_the_more_specific_pattern_wins_whatever_its_code_is(
    migrated: Migrated, code: str, text: str
) -> None:
    new, codes = migrated(text, rule(code, "torch.cuda.foo", "torch_npu.npu.foo"))
    assert "torch_npu.npu" in new
    assert codes == {code}


@pytest.mark.parametrize("code", ["ACME101", "ZED101"])
def test_so_it_does_in_front_of_what_ours_knows(migrated: Migrated, code: str) -> None:
    text = "import torch\ntorch.cuda.synchronize()\ne = torch.cuda.Event.from_ipc_handle(0, h)\n"
    pack = rule(code, "torch.cuda.synchronize", "acme.wait") + rule(
        code + "0", "torch.cuda.Event", "acme.Event"
    )
    new, codes = migrated(text, pack)
    assert "acme.wait()" in new
    assert "acme.Event.from_ipc_handle(0, h)" in new
    assert codes == {code, code + "0"}


@pytest.mark.parametrize("code", ["ACME101", "ZED101"])
@pytest.mark.parametrize("text", USES)
def test_ours_is_more_specific_than_a_users_wider_one(migrated: Migrated, code: str, text: str) -> None:
    assert migrated(text, rule(code, "torch.*"))[1] == {"NPU101"}


@pytest.mark.parametrize("code", ["ACME101", "ZED101"])
@pytest.mark.parametrize(
    ("text", "match", "kind", "ours"),
    [
        ("import torch\ntorch.cuda.foo()\n", "torch.cuda.*", "name", "NPU101"),
        ("def f(tensor):\n    return tensor.cuda()\n", ".cuda", "method", "NPU111"),
        ("def f(tensor):\n    return tensor.is_cuda\n", ".is_cuda", "attribute", "NPU112"),
        ("import apex\n", "apex.*", "import", "NPU601"),
        ("x = 'CUDAExecutionProvider'\n", "CUDAExecutionProvider", "on: string", "NPU621"),
        ("if 'CUDA out of memory' in str(e): pass\n", "CUDA out of memory", "on: string", "NPU162"),
    ],
)
def test_equally_specific_a_users_rule_wins(
    migrated: Migrated, code: str, text: str, match: str, kind: str, ours: str
) -> None:
    assert ours in migrated(text)[1]
    assert migrated(text, rule(code, match, kind=kind, replace=".acme" if match[0] == "." else ""))[1] == {
        code
    }


@pytest.mark.parametrize("codes", [("ACME101", "ZED101"), ("ZED101", "ACME101")])
def test_of_users_rules_the_first_code_wins(migrated: Migrated, codes: tuple[str, str]) -> None:
    packs = [rule(code, "torch.cuda.foo", f"torch_npu.{code}") for code in codes]
    assert migrated(USES[0], *packs)[1] == {"ACME101"}


def test_the_longest_phrase_wins(migrated: Migrated) -> None:
    text = "if 'CUDA out of memory. Tried' in str(e): pass\n"
    assert migrated(text, rule("ZED101", "CUDA out of memory. Tried", kind="on: string"))[1] == {"ZED101"}
    assert migrated(text, rule("ACME101", "out of memory", kind="on: string"))[1] == {"NPU162"}


@pytest.mark.parametrize("code", ["ACME101", "ZED101"])
def test_between_kinds_the_more_specific_fix_is_made(migrated: Migrated, code: str) -> None:
    text = "import torch\ntorch.cuda.synchronize()\n"
    more = ", fix: safe, do: rename('acme.wait')"
    pack = rule(code, "torch.cuda.synchronize", kind="on: call", more=more)
    assert "acme.wait()" in migrated(text, pack)[0]
