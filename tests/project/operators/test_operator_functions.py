"""CUDA operators for which the result gets functions of ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.files.naming import EQUIVALENTS
from migrator.findings.finding import Result
from migrator.project.added_package import Place
from tests.checking import load_pack, migrate_text
from tests.project.operators.projects import project

KERNEL = "__global__ void query_kernel(const float* x, int* idx) {}\n"
BOUND = (
    "at::Tensor ball_query(at::Tensor new_xyz, at::Tensor xyz, const float radius, const int nsample) {\n"
    "  query_kernel<<<1, 32>>>(xyz.data_ptr<float>(), nullptr); return xyz; }\n"
    "at::Tensor blur(at::Tensor x) { query_kernel<<<1, 32>>>(nullptr, nullptr); return x; }\n"
    "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n"
    '  m.def("ball_query", &ball_query, "ball query");\n  m.def("blur", &blur); }\n'
)
SETUP = (
    "from torch.utils.cpp_extension import CUDAExtension\n"
    'x = CUDAExtension("points._ext", ["points/query.cu"])\n'
)
TEXT = (
    "import torch\nfrom points import _ext\n\n\ndef query(xyz, centres):\n"
    "    return _ext.ball_query(centres, xyz, 0.2, 16)\n"
)


def migrated(text: str, source: str = BOUND, name: str = "points/ops.py", added: bool = True) -> Result:
    files = {"setup.py": SETUP, "points/query.cu": KERNEL + source, name: text}
    known = project(files)
    if added:
        known = replace(known, added={EQUIVALENTS: EQUIVALENTS}, places={name: Place("points", "points")})
    result = migrate_text(Rules(Settings(version="2.6.0"), load_pack), name, text, known)
    assert result.skipped == ""
    return result


def test_the_operator_is_called_from_our_package_and_the_import_goes() -> None:
    result = migrated(TEXT)
    assert result.text == (
        "import torch\nfrom points import ascend_function\n\n\ndef query(xyz, centres):\n"
        "    return ascend_function.ball_query(centres, xyz, 0.2, 16)\n"
    )
    assert {finding.code for finding in result.findings} == {"NPU663"}


def test_nothing_is_imported_where_the_file_has_a_branch_for_npus() -> None:
    branch = '    if xyz.device.type == "npu":\n        return torch.cdist(centres, xyz)\n'
    text = TEXT.replace("    return _ext", f"{branch}    return _ext")
    assert migrated(text).text in (None, text)


@pytest.mark.parametrize(("last", "called"), [("int kernel_size", 1), ("int kernel_size, bool nearest", 0)])
def test_an_older_signature_may_end_before_parameters_with_defaults(last: str, called: int) -> None:
    source = (
        f"int forward(at::Tensor& input1, at::Tensor& input2, at::Tensor& output, {last}) {{\n"
        "  query_kernel<<<1, 32>>>(nullptr, nullptr); return 1; }\n"
        'PYBIND11_MODULE(resample2d_cuda, m) { m.def("forward", &forward, "resample"); }\n'
    )
    text = "import resample2d_cuda\n\n\ndef f(a, b, out):\n    resample2d_cuda.forward(a, b, out, 1)\n"
    result = migrated(text, source).text or ""
    assert result.count("ascend_function.resample2d_forward(a, b, out, 1)") == called


@pytest.mark.parametrize(("given", "called"), [("a, b, found", 2), ("a, b", 0), ("a, b, ans_iou=found", 0)])
def test_what_is_bound_for_the_cpu_beside_operators_is_called_too(given: str, called: int) -> None:
    signature = "(at::Tensor boxes_a, at::Tensor boxes_b, at::Tensor ans_iou)"
    source = (
        f"int boxes_iou_bev_cpu{signature} {{ return 1; }}\n"
        f"int boxes_iou_bev_gpu{signature} {{ query_kernel<<<1, 32>>>(nullptr, nullptr); return 1; }}\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n  m.def("boxes_iou_bev_cpu", &boxes_iou_bev_cpu);\n'
        '  m.def("boxes_iou_bev_gpu", &boxes_iou_bev_gpu); }\n'
    )
    text = (
        "from points import _ext\n\n\ndef f(a, b, found):\n    _ext.boxes_iou_bev_gpu(a, b, found)\n"
        f"    _ext.boxes_iou_bev_cpu({given})\n"
    )
    assert (migrated(text, source).text or "").count(
        "ascend_function.boxes_iou_bev_gpu(a, b, found)"
    ) == called


def test_an_extension_that_is_built_at_import_is_built_with_cuda_only() -> None:
    build = 'load("_ext", sources=["points/query.cu"])'
    text = TEXT.replace(
        "from points import _ext\n", f"from torch.utils.cpp_extension import load\n_ext = {build}\n"
    )
    found = migrated(text).text
    assert found is not None
    assert f"_ext = {build} if torch.version.cuda else None\n" in found
    assert "ascend_function.ball_query(centres, xyz, 0.2, 16)" in found


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (TEXT, BOUND.replace("at::Tensor new_xyz, at::Tensor xyz,", "at::Tensor xyz, at::Tensor new_xyz,")),
        (TEXT, BOUND.replace("const int nsample", "const int nsample, at::Tensor idx")),
        (f"{TEXT}\n\ndef blurred(x):\n    return _ext.blur(x)\n", BOUND),
        (f"{TEXT}\n\next = _ext\n", BOUND),
        (TEXT.replace("import _ext", "import _ext, config"), BOUND),
    ],
    ids=["other-order", "other-parameters", "another-operator", "handed-on", "imported-with-others"],
)
def test_what_is_not_certain_stays_and_is_named(text: str, source: str) -> None:
    result = migrated(text, source)
    assert result.text is None or "ascend_function" not in result.text
    (named,) = (each for each in result.findings if each.code == "NPU653" and "ball_query" in each.api)
    assert named.advice.startswith("Operator: ball query. NPU equivalents: mmcv.ops.ball_query(")


def test_nothing_changes_where_the_result_gets_no_package() -> None:
    result = migrated(TEXT, added=False)
    assert result.text is None
    assert {finding.code for finding in result.findings} == {"NPU653"}


def test_a_way_of_its_own_goes_before() -> None:
    text = TEXT.replace(
        "    return _ext",
        '    if xyz.device.type == "cpu":\n        return torch.cdist(centres, xyz)\n    return _ext',
    )
    found = migrated(text).text
    assert found is not None
    assert 'if xyz.device.type != "cuda":' in found
    assert "ascend_function" not in found
