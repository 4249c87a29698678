"""Functions of libraries that go to CUDA by themselves, by the version that a project asks for."""

from __future__ import annotations

from typing import Optional

import pytest

from migrator.api_support.libraries import defaults
from migrator.findings.finding import Result
from migrator.project.project import Project
from tests.checking import migrate_text
from tests.matchers.migrating import engine

MIXUP = """\
import torch
from timm.data import Mixup
def build(wanted):
    if wanted:
        mixup = Mixup(0.8)
        return mixup
"""


def migrated(text: str, wanted: str = "", library: str = "timm", packages: tuple[str, ...] = ()) -> Result:
    lines = (f"{library}{wanted}",) if wanted else ()
    project = Project(requirements=lines, packages=frozenset(packages))
    return migrate_text(engine("2.6"), "example.py", text, project)


def found(result: Result) -> list[tuple[str, str]]:
    return [(each.code, each.severity) for each in result.findings if each.code in ("NPU638", "NPU639")]


@pytest.mark.parametrize(
    ("wanted", "severity", "fixed"),
    [
        ("==0.4.12", "error", True),
        ("==0.3.2", "error", True),
        ("<=0.4.5", "error", True),
        ("", "warning", False),
        (">=0.3", "warning", False),
        ("==0.5.4", None, False),
        (">=0.6", None, False),
        (">=0.9,<1.1", None, False),
    ],
)
def test_what_only_some_versions_do_is_mended_in_those(
    wanted: str, severity: Optional[str], fixed: bool
) -> None:
    result = migrated(MIXUP, wanted)
    assert found(result) == ([("NPU638", severity)] if severity else [])
    assert ("__defaults__" in (result.text or "")) == fixed


def test_a_mended_library_is_left_alone() -> None:
    text = migrated(MIXUP, "==0.4.12").text
    assert text is not None
    assert text.replace("import torch_npu\n", "") == MIXUP.replace(
        "        mixup = M",
        "        import timm.data.mixup as timm_mixup\n"
        '        timm_mixup.mixup_target.__defaults__ = (1.0, 0.0, "npu")\n'
        "        mixup = M",
    )
    for mended in (text, text.replace('"npu")', "shared_device.TYPE)")):
        again = migrated(mended, "==0.4.12")
        assert (again.text, found(again)) == (None, [])


@pytest.mark.parametrize(
    ("wanted", "call", "after"),
    [
        ("", "create_loader(data)", 'create_loader(data, device=torch.device("npu"))'),
        ("==0.9.16", "create_loader(data)", 'create_loader(data, device=torch.device("npu"))'),
        ("==0.6.13", "create_loader(data)", "create_loader(data)"),
    ],
)
def test_an_argument_is_given_only_to_versions_that_take_it(wanted: str, call: str, after: str) -> None:
    text = f"import torch\nfrom timm.data import create_loader\ndef load(data):\n    return {call}\n"
    result = migrated(text, wanted)
    assert found(result) == [("NPU638", "error")]
    assert (result.text or text).replace("import torch_npu\n", "") == text.replace(call, after)


def test_without_torch_no_device_of_its_is_written() -> None:
    result = migrated(
        "from timm.data import create_loader\ndef load(data):\n    return create_loader(data)\n"
    )
    assert (found(result), result.text) == ([("NPU638", "error")], None)


@pytest.mark.parametrize(
    ("call", "severity"),
    [
        ("summary(net, (3, 8, 8), device='cpu')", None),
        ("summary(net, (3, 8, 8), 2, 'cpu')", None),
        ("summary(net, (3, 8, 8), device='cuda')", "error"),
        ("summary(net, (3, 8, 8), device=name)", "warning"),
        ("summary(net, *rest)", None),
    ],
)
def test_torchsummary_takes_no_npu(call: str, severity: Optional[str]) -> None:
    text = f"from torchsummary import summary\ndef show(net, name, rest):\n    {call}\n"
    result = migrated(text)
    assert found(result) == ([("NPU638", severity)] if severity else [])
    assert result.text is None, "it raises for every other device than cuda and cpu"


def test_a_projects_own_package_is_no_library() -> None:
    text = "import clip\ndef load():\n    return clip.load('ViT-B/32')\n"
    assert found(migrated(text)) == [("NPU639", "warning")]
    assert found(migrated(text, packages=("clip",))) == []


def test_a_method_is_the_librarys_where_the_file_imports_it() -> None:
    use = "def run(pipe):\n    pipe.enable_model_cpu_offload()\n"
    given = 'pipe.enable_model_cpu_offload(device="npu")'
    text = "import diffusers\n" + use
    result = migrated(text, "==0.30.3", "diffusers")
    assert (found(result), given in (result.text or "")) == ([("NPU638", "error")], True)
    assert found(migrated(text, "==0.35.0", "diffusers")) == []
    assert found(migrated(use, "==0.30.3", "diffusers")) == []


def test_the_rules_start_from_the_packages_of_the_table() -> None:
    rules = {rule.code: rule for rule in engine("2.6").every.values() if rule.code in ("NPU638", "NPU639")}
    assert len(rules) == 2
    for rule in rules.values():
        told = (
            each for every in defaults().values() for each in every if each.outcome in rule.options.outcomes
        )
        assert set(rule.words) == {each.api.partition(".")[0] for each in told}
