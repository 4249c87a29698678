"""Adding a release from its wheel: what it says, and wheels that are wrong, damaged or hostile."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from migrator.api_support import tables
from migrator.data_folders import data_folder
from tests.api_support.wheel_files import CODEGEN, npu_wheel
from tools.releases import add as release
from tools.releases import check
from tools.releases.add import add
from tools.releases.archive import Archive, WheelError
from tools.releases.wheels import read_wheel


@pytest.fixture
def api_db(tmp_path: Path) -> Path:
    folder = tmp_path / "api_db"
    shutil.copytree(data_folder("api_db"), folder)
    return folder


def rows(folder: Path, table: str, name: str) -> list[list[str]]:
    return [row for row in tables.rows(table, folder) if row[0] == name]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.csv")}


def test_what_is_read_of_a_wheel(tmp_path: Path) -> None:
    wheel = read_wheel(npu_wheel(tmp_path, "2.15.0.post1"))
    assert (wheel.package, wheel.torch_version, wheel.release) == ("torch_npu", "2.15.0", "2.15.0.post1")
    assert wheel.operators
    assert wheel.operators.aten == {"abs", "add.Tensor", "contiguous", "clone"}
    assert wheel.operators.custom == {"npu_magic"}
    assert wheel.modules["torch_npu.npu"] == {"set_device": "function", "Stream": "class"}
    assert "torch_npu.npu.Stream.wait" in wheel.own_names


def test_a_new_release(tmp_path: Path, api_db: Path) -> None:
    changed = add([read_wheel(npu_wheel(tmp_path))], api_db, api_db)
    assert changed[-1] == api_db / "versions.csv"
    assert check.problems(api_db) == []
    row = rows(api_db, "versions", "2.15.0")[0]
    assert row[1:5] == ["2.15.0", "wheel", "", "2.15.0"]
    assert row[-1] == "torch_npu wheel; as torch 2.14.0"
    assert row[5:-1] == rows(api_db, "versions", "2.14.0")[0][5:-1]
    # What it has not ends at the release before it; what it has goes on.
    assert rows(api_db, "kernels", "abs")[-1][2] == ""
    assert rows(api_db, "kernels", "abs.out")[-1][2] == "2.14.0"
    assert rows(api_db, "custom_ops", "torch_npu.npu_magic") == [
        ["torch_npu.npu_magic", "2.15.0", "", "op", "", "", "", "yaml"]
    ]
    assert rows(api_db, "custom_ops", "torch_npu.npu_rms_norm")[-1][2] == "2.14.0"
    assert rows(api_db, "npu_names", "torch.cuda.set_device")[-1][2:5] == [
        "",
        "function",
        "torch.npu.set_device",
    ]
    assert rows(api_db, "npu_names", "torch.cuda.Event")[-1][1:5] == ["2.15.0", "", "class", ""]
    # The documents say nothing of it.
    assert (api_db / "api_support.csv").read_bytes() == (
        data_folder("api_db") / "api_support.csv"
    ).read_bytes()


def test_adding_a_release_twice_changes_nothing(tmp_path: Path, api_db: Path) -> None:
    wheel = read_wheel(npu_wheel(tmp_path))
    add([wheel], api_db, api_db)
    before = bytes_of(api_db)
    assert add([wheel], api_db, api_db) == []
    assert bytes_of(api_db) == before


def test_a_post_release_takes_the_place_of_another(tmp_path: Path, api_db: Path) -> None:
    add([read_wheel(npu_wheel(tmp_path))], api_db, api_db)
    codegen = CODEGEN.replace("abs(", "asin(")
    add([read_wheel(npu_wheel(tmp_path, "2.15.0.post2", codegen=codegen))], api_db, api_db)
    assert rows(api_db, "versions", "2.15.0")[0][1] == "2.15.0.post2"
    assert rows(api_db, "kernels", "abs")[-1][2] == "2.14.0"
    assert rows(api_db, "kernels", "asin")[-1][2] == ""


def test_the_order_of_releases_does_not_matter(tmp_path: Path, api_db: Path) -> None:
    texts = {"2.15.0": "def set_device(): ...\n", "2.16.0": "class Event: ...\n"}
    wheels = [read_wheel(npu_wheel(tmp_path, version, npu=text)) for version, text in texts.items()]
    other = tmp_path / "other"
    add(wheels, api_db, other)
    for wheel in reversed(wheels):
        add([wheel], api_db, api_db)
    assert bytes_of(other) == bytes_of(api_db)


def test_tables_that_would_not_hold_together_are_not_written(
    tmp_path: Path, api_db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bytes_of(api_db)
    monkeypatch.setattr(release.check, "problems", lambda folder: ["kernels.csv: all wrong"])
    with pytest.raises(WheelError, match="all wrong"):
        add([read_wheel(npu_wheel(tmp_path))], api_db, api_db)
    assert bytes_of(api_db) == before


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"metadata": None}, "it has no METADATA"),
        ({"metadata": "Name: torch_npu\n"}, "lacks the name or the version"),
        ({"metadata": "Name: numpy\nVersion: 2.0.0\n"}, "but numpy 2.0.0"),
        ({"metadata": "Name: torch_npu\nVersion: newest\n"}, "but torch_npu newest"),
        ({"metadata": "Name: torch_npu\nVersion: 2.15.0/../../x\n"}, "but torch_npu 2.15.0/../../x"),
        ({"npu": None}, "has no torch_npu/npu/__init__.py"),
        ({"npu": "def broken(:\n"}, "does not parse"),
        ({"npu": b"x = '\xff'\n"}, "no UTF-8 text"),
        ({"npu": "x = 1\0\n"}, "does not parse"),
        ({"npu": "(" * 100_000}, "does not parse"),
        ({"npu": "#" * (17 << 20)}, "is too large"),
        ({"codegen": None}, "has no torch_npu/csrc/aten/npu_native_functions_by_codegen.yaml"),
        ({"codegen": "a: [b\n"}, "is no YAML"),
        ({"codegen": "[" * 50_000}, "is no YAML"),
        ({"codegen": "- " * 50_000}, "is no YAML"),
        ({"codegen": "just words\n"}, "is no operator list"),
        ({"codegen": "supported:\n- func: 'a,b\"(x)'\n"}, "lists 'a,b"),
        ({"codegen": "supported:\n- 3\n"}, "lists 3"),
        ({"codegen": "backend: NPU\n", "native": "backend: NPU\n"}, "has no operators"),
        ({"codegen": "supported: !!python/object/apply:os.system ['touch /tmp/x']\n"}, "is no YAML"),
    ],
)
def test_a_wheel_that_is_wrong(tmp_path: Path, changed: dict[str, str], said: str) -> None:
    path = npu_wheel(tmp_path, **changed)
    with pytest.raises(WheelError) as caught:
        read_wheel(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_wheels(tmp_path: Path) -> None:
    path = npu_wheel(tmp_path)
    content = path.read_bytes()
    for damaged in (b"", b"no zip", content[: len(content) // 2], content[-100:]):
        path.write_bytes(damaged)
        with pytest.raises(WheelError, match=r"cannot be read|is damaged|is no wheel"):
            read_wheel(path)
    # A file whose bytes are not what the archive says.
    path.write_bytes(content.replace(content[60:70], b"\xff" * 10, 1))
    with pytest.raises(WheelError):
        read_wheel(path)
    with pytest.raises(WheelError, match="Is a directory"):
        read_wheel(tmp_path)


def test_a_hostile_archive_writes_nothing(tmp_path: Path, api_db: Path) -> None:
    path = npu_wheel(
        tmp_path,
        **{
            "../../escaped.py": "x = 1\n",
            "/tmp/npumigrate_escaped.py": "x = 1\n",
            "torch_npu/npu/../../../up.py": "x = 1\n",
            "torch_npu/npu/a,b.py": "x = 1\n",
            "torch_npu/npu/new\nline.py": "x = 1\n",
        },
    )
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("torch_npu/npu/link.py")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd = 1")
    before = set(tmp_path.rglob("*"))
    with pytest.raises(WheelError, match="does not parse"):  # the link's text is no Python
        read_wheel(path)
    path = npu_wheel(tmp_path, **{"torch_npu/npu/../up.py": "x = 1\n", "torch_npu/npu/a,b.py": "x = 1\n"})
    wheel = read_wheel(path)
    assert {name for name in wheel.modules if name.startswith("torch_npu.npu")} == {"torch_npu.npu"}
    assert set(tmp_path.rglob("*")) == before
    assert not Path("/tmp/npumigrate_escaped.py").exists()


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    # 200 files of 1 MiB each, in 200 KiB.
    many = {f"torch_npu/npu/m{number}.py": "#" * (1 << 20) for number in range(200)}
    with pytest.raises(WheelError, match="is too large"):
        read_wheel(npu_wheel(tmp_path, **many))


def test_only_what_is_needed_is_read(tmp_path: Path) -> None:
    path = npu_wheel(tmp_path, **{"torch_npu/lib/libtorch_npu.so": b"\0" * (40 << 20)})
    archive = Archive(path)
    assert "torch_npu/lib/libtorch_npu.so" in archive.entries
    archive.close()
    assert read_wheel(path).release == "2.15.0"
