"""A user's words for a version, and which releases belong together."""

from __future__ import annotations

import pytest

from migrator.api_support import companions, versions


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


def test_the_releases_that_the_other_tables_stand_on_are_known() -> None:
    for version in versions.known():
        if version.torch_npu:
            found = companions.of_torch_npu(version.torch_npu)
            assert found is not None, version.torch_npu
            assert found.torch == version.text


@pytest.mark.parametrize(
    ("installed", "release", "cann"),
    [
        ("2.7.1.post2", "2.7.1.post2", "8.5.0"),
        ("2.6.0", "2.6.0", "8.2.RC1"),
        ("2.1.0.post13+git1234", "2.1.0.post13", "8.2.RC1"),
        ("2.1.0.rc1", "2.1.0rc1", "7.0.RC1"),
    ],
)
def test_a_release_of_torch_npu_is_found(installed: str, release: str, cann: str) -> None:
    found = companions.of_torch_npu(installed)
    assert found is not None
    assert (found.torch_npu, found.cann) == (release, cann)


@pytest.mark.parametrize("installed", ["2.5.1.dev20250226", "2.6.0.post99", "9.9.9", "", "word"])
def test_another_one_is_not(installed: str) -> None:
    assert companions.of_torch_npu(installed) is None


def test_the_releases_of_a_torch() -> None:
    assert [one.torch_npu for one in companions.of_torch("2.4.0+cpu")] == [
        "2.4.0",
        "2.4.0.post2",
        "2.4.0.post4",
    ]
    assert companions.of_torch("2.4") == companions.of_torch("2.4.0")
    assert {one.torch for one in companions.of_torch("2.1")} == {"2.1.0"}  # and none of 2.10
    assert companions.of_torch("2.4.1") == companions.of_torch("word") == ()


@pytest.mark.parametrize(
    ("torch", "cann", "release"),
    [
        ("2.6.0+cpu", "8.3.RC1", "2.6.0.post3"),
        ("2.6.0", "8.2.RC1", "2.6.0"),
        ("2.6.0", "9.9.0", "2.6.0.post5"),
        ("2.6.0", "", "2.6.0.post5"),
        ("2.9.1", "", "2.9.1"),
        ("2.6.7", "8.3.RC1", ""),
    ],
)
def test_the_release_to_install(torch: str, cann: str, release: str) -> None:
    assert companions.release_for(torch, cann) == release


def test_versions_of_cann_are_in_order() -> None:
    order = ["7.0.RC1", "7.0.RC1.3", "7.0.0", "8.0.RC3", "8.0.0", "8.0.0.beta1", "8.2.RC1", "8.5.0", "9.1.0"]
    keys = [companions.cann_order(one) for one in order]
    assert None not in keys
    assert keys == sorted(keys)  # type: ignore[type-var]
    assert companions.cann_order("8.0.T6") is None


def test_families_and_their_ranges() -> None:
    assert companions.family("V100R001C19SPC001B124") == "V100R001C19"
    assert companions.family("unknown") == ""
    assert companions.names(("V100R001C15-V100R001C18",), "V100R001C17")
    assert companions.names(("V100R001C15", "V100R001C19"), "V100R001C19")
    assert not companions.names(("V100R001C15", "V100R001C19"), "V100R001C17")
