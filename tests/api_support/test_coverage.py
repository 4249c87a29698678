"""Every public name has an answer."""

from __future__ import annotations

import pytest

from migrator.api_support.verdicts import basis
from migrator.api_support.versions import known, resolve
from tools.releases.coverage import coverage


@pytest.mark.parametrize("version", [version.text for version in known()])
def test_nearly_every_name_has_an_answer(version: str) -> None:
    found = coverage(resolve(version), every=12)
    assert found.names > 500
    assert found.answered >= 0.98, found.unknown
    assert all(reason for _, reason in found.unknown)
    assert sum(found.verdicts.values()) == found.names


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("torch.cuda.Event", "names"),
        ("torch.nn.Linear", "documents"),
        ("torch.linalg.svd", "executed"),
        ("torch.distributions.Normal", "source"),
        ("torch.amp.GradScaler", "source"),  # an alias of torch.GradScaler
        ("torch.FunctionSchema", "core"),
        ("torch.fx", "value"),
        ("torch.xpu.is_available", "area"),
        ("torch.no_such_name", ""),
    ],
)
def test_what_an_answer_is_known_from(name: str, kind: str) -> None:
    assert basis(name, resolve("2.13")) == kind
