"""A user's words for a version."""

from __future__ import annotations

import pytest

from migrator.api_support import versions


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("1.8.1", "1.8.1"),
        ("1.8", "1.8.1"),
        ("1.11", "1.11.0"),
        ("2.0", "2.0.1"),
        ("2.1", "2.1.0"),
        ("2.1.2", "2.1.0"),
        ("2.1.0+cu118", "2.1.0"),
        ("2.1.0+cpu", "2.1.0"),
        ("v2.6", "2.6.0"),
        ("2.6.0a0", "2.6.0"),
        ("2.6.0a0+gitabc123", "2.6.0"),
        ("2.6.0rc1", "2.6.0"),
        ("2.7.1.post2", "2.7.1"),
        ("2.8.0.dev20250101", "2.8.0"),
        (" 2.13 ", "2.13.0"),
    ],
)
def test_resolves(text: str, known: str) -> None:
    assert versions.resolve(text).text == known


@pytest.mark.parametrize("text", ["", "2", "1.7", "3.0", "newest", "2.6.x", "2.6;", "12.6.0"])
def test_refuses_what_is_not_known(text: str) -> None:
    with pytest.raises(versions.UnknownVersion, match=r"1\.8\.1, 1\.11\.0, 2\.0\.1.*2\.13\.0"):
        versions.resolve(text)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("1.9", "1.8.1 and 1.11.0"),
        ("1.10.2", "1.8.1 and 1.11.0"),
        ("1.12", "1.11.0 and 2.0.1"),
        ("1.13.1+cu117", "1.11.0 and 2.0.1"),
    ],
)
def test_a_torch_without_a_torch_npu_names_the_nearest_that_have_one(text: str, nearest: str) -> None:
    with pytest.raises(
        versions.UnknownVersion, match=f"torch_npu has no release for torch .*nearest, {nearest}$"
    ):
        versions.resolve(text)


def test_an_unknown_version_is_a_value_error() -> None:
    assert issubclass(versions.UnknownVersion, ValueError)


def test_versions_are_in_order() -> None:
    numbers = [version.tuple for version in versions.known()]
    assert numbers == sorted(numbers)
    assert versions.newest().text == "2.14.0"


@pytest.mark.parametrize(
    ("switch", "last_without", "first_with"),
    [
        ("int_device_is_npu", "2.2", "2.3"),
        ("has_set_default_device", "1.11", "2.1"),
        # torch.cuda of 2.4.0 takes torch._C.OutOfMemoryError, that of 2.3.1 torch._C._OutOfMemoryError.
        ("has_oom_error", "2.3", "2.4"),
        ("has_amp_grad_scaler", "2.2", "2.3"),
        ("autoloads_backends", "2.4", "2.5"),
    ],
)
def test_a_switch_is_thrown_once(switch: str, last_without: str, first_with: str) -> None:
    thrown = [getattr(version, switch) for version in versions.known()]
    assert thrown == sorted(thrown)
    assert not getattr(versions.resolve(last_without), switch)
    assert getattr(versions.resolve(first_with), switch)
