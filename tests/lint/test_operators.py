"""Custom CUDA operators: what C++ and CUDA files of the folders define decides findings in Python files."""

from __future__ import annotations

import pytest

from migrator.native import functions
from tests.project.operators.projects import LAUNCHER
from tests.reading import write

BINDING = LAUNCHER + 'PYBIND11_MODULE(scale_ext, m) { m.def("scale", &scale_cuda); }\n'
SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension

setup(ext_modules=[CUDAExtension("scale_ext", ["scale.cu"])])
"""
USE = "import scale_ext\n\n\ndef double(x):\n    return scale_ext.scale(x)\n"


@pytest.fixture
def scaled(tmp_path):
    return write(tmp_path, {"scale.cu": BINDING, "setup.py": SETUP, "use.py": USE})


def places(answer) -> list[tuple[str, int]]:
    return [(code, row) for code, row, _ in answer.places()]


FOUND = [("NPU651", 4), ("NPU653", 1), ("NPU653", 5)]


def test_operators_of_the_folder_are_known(lint, scaled) -> None:
    answer = lint("--select=NPU65", "--output-format=json")
    assert places(answer) == FOUND
    assert lint("--select=NPU65", "--output-format=json").out == answer.out  # from the cache
    assert places(lint("--select=NPU65", "--output-format=json", "--no-cache", "-j2")) == FOUND


def test_operators_are_named_without_the_folder_of_a_release(lint, tmp_path) -> None:
    sources = 'CUDAExtension("scaler.scale_ext", ["scaler/scale.cu"])'
    files = {
        "setup.py": SETUP.replace('CUDAExtension("scale_ext", ["scale.cu"])', sources),
        "scaler/__init__.py": "",
        "scaler/scale.cu": BINDING,
        "scaler/use.py": USE.replace("import scale_ext", "from . import scale_ext"),
    }
    write(tmp_path / "scaler-1.0", files)
    out = lint("--select=NPU653", "--output-format=concise").out
    assert "NPU653 blocker: scaler.scale_ext is an extension built from CUDA sources" in out
    assert "NPU653 error: scaler.scale_ext.scale is a CUDA operator (scaler-1.0/scaler/scale.cu:" in out


def test_of_single_files_only_what_they_say_themselves(lint, scaled) -> None:
    assert lint("use.py", "--select=NPU65").code == 0
    assert places(lint("setup.py", "--select=NPU65", "--output-format=json")) == FOUND[:1]


def test_a_changed_native_file_changes_the_findings(lint, scaled) -> None:
    lint("--select=NPU65")
    plain = 'int plain() {}\nPYBIND11_MODULE(scale_ext, m) { m.def("scale", &plain); }\n'
    (scaled / "scale.cu").write_text(plain)
    cached = lint("--select=NPU65", "--output-format=json")
    assert cached.out == lint("--select=NPU65", "--output-format=json", "--no-cache").out
    assert ("NPU653", 5) not in places(cached)
    (scaled / "scale.cu").unlink()
    (scaled / "setup.py").unlink()
    assert places(lint("--select=NPU65", "--output-format=json")) == []


def test_native_files_are_read_once(lint, scaled, monkeypatch) -> None:
    asked: list[int] = []
    texts_to_scan = functions.texts_to_scan

    def noted(native):
        asked.append(len(native))
        return texts_to_scan(native)

    monkeypatch.setattr(functions, "texts_to_scan", noted)
    lint("--select=NPU65")
    (scaled / "use.py").write_text(USE + "\n\nprint(double)\n")
    assert places(lint("--select=NPU65", "--output-format=json")) == FOUND
    assert asked == [1]


def test_excluded_native_files_are_not_read(lint, scaled) -> None:
    (scaled / "setup.py").unlink()
    assert places(lint("--select=NPU65", "--output-format=json")) == FOUND[1:]
    assert places(lint("--select=NPU65", "--output-format=json", "--exclude=*.cu")) == []


@pytest.mark.parametrize(
    ("sources", "severity", "message"),
    [
        ("['scale.cu']", "error", "torch.utils.cpp_extension.load builds a CUDA operator: scale_ext"),
        ("sources", "warning", "torch.utils.cpp_extension.load builds operators from sources outside"),
    ],
)
def test_sources_that_are_not_seen_are_not_called_cuda(lint, tmp_path, sources, severity, message) -> None:
    text = "from torch.utils.cpp_extension import load\n\n\ndef build(sources):\n"
    (tmp_path / "build.py").write_text(f"{text}    return load('scale_ext', {sources})\n")
    (found,) = lint("--select=NPU651", "--output-format=json").json()
    assert found["severity"] == severity
    assert found["message"].startswith(message)


def test_an_internal_error_in_a_native_file_is_told(lint, scaled, monkeypatch) -> None:
    def fails(*_: object) -> None:
        raise KeyError("gone")

    monkeypatch.setattr("migrator.native.functions.scan_native", fails)
    for _ in range(2):  # and again, where the cache knows the rest
        answer = lint("--select=NPU65", "-j1")
        assert (answer.code, answer.err.count("\n")) == (2, 1)
        assert "scale.cu: internal error, file left unchanged: KeyError('gone'); " in answer.err
