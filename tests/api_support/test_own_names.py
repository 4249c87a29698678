"""Which names torch_npu has at a version."""

from __future__ import annotations

from typing import Optional

import pytest

from migrator.api_support import own_names, tables
from migrator.api_support.own_names import Absence, absence, spelled
from migrator.api_support.versions import known, resolve


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("torch.npu.NPUGraph", "1.11", Absence(first="2.1.0")),
        ("torch.npu.NPUGraph", "2.1", None),
        ("torch_npu.npu_fusion_attention_v3", "2.6", Absence(first="2.7.1")),
        ("torch_npu.npu_multi_head_attention_v2", "2.13", Absence(last="2.5.1")),
        ("torch_npu.distributed.all_reduce", "1.11", None),
        ("torch_npu.distributed.all_reduce", "2.6", Absence(last="1.11.0")),
        ("torch.npu.no_such_name", "2.6", Absence()),
        ("torch_npu.npu_no_such_operator", "2.6", Absence()),
        ("torch.npu.memory.no_such_name", "2.13", Absence()),
        # Nobody looked for all names of a release without a wheel.
        ("torch.npu.no_such_name", "1.11", None),
        # Its lists do not have it, its sources speak of it.
        ("torch_npu.npu_rms_norm", "1.11", None),
        ("torch.npu._no_such_name", "2.6", None),
        ("torch.npu.amp.GradScaler", "2.6", None),
        ("torch.npu.matmul.allow_hf32", "2.6", None),
        ("torch_npu.contrib.module.SiLU", "1.11", None),
        ("torch_npu.nothing_that_is_listed", "2.6", None),
    ],
)
def test_absence(name: str, version: str, expected: Optional[Absence]) -> None:
    assert absence(spelled(name), resolve(version)) == expected


def test_what_stands_for_cuda_names_is_there() -> None:
    for cuda, first, last, _, npu, *_ in tables.rows("npu_names"):
        if npu.startswith("torch.npu.") and npu.count(".") == 2:
            for version in known():
                if tables.covers(first, last, version.tuple):
                    assert absence(spelled(npu), version) is None, (cuda, version.text)


def test_mentioned_names_are_of_releases_without_a_wheel() -> None:
    without = {version.text for version in known() if "wheel" not in version.evidence}
    rows = list(tables.rows("mentioned_names"))
    assert rows
    for name, versions in rows:
        assert own_names.releases_with(name)
        assert without.issuperset(versions.split())
        assert not set(versions.split()).intersection(own_names.releases_with(name))
