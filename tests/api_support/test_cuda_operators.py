"""The table of CUDA operators: what it says of functions that extensions bind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from migrator import language
from migrator.api_support.libraries import equivalents_of, known_operator, operators_of_libraries
from migrator.api_support.tables import rows
from migrator.data_folders import data_folder


@pytest.mark.parametrize(
    ("function", "place", "operator"),
    [
        ("ms_deform_attn_forward", "", "multi-scale deformable attention"),
        ("modulated_deform_conv_cuda_forward", "deform_conv_cuda", "deformable convolution v2"),
        ("deform_conv_forward_cuda", "deform_conv_cuda", "deformable convolution v1"),
        ("forward", "networks/correlation_package/correlation_cuda.cc", "correlation of feature maps"),
        ("backward", "ops.roiaware_pool3d_cuda", "ROI-aware 3D pooling"),
        ("forward", "chamfer_3D", "chamfer distance"),
        ("fwd", "selective_scan_cuda", "selective scan (Mamba)"),
        ("fwd", "flash_attn_2_cuda", "flash attention"),
        ("nms_gpu", "iou3d_nms_cuda", "NMS of 3D boxes"),
        ("nms", "_C", "non-maximum suppression"),
        ("furthest_point_sampling_wrapper", "pointnet2_cuda", "furthest point sampling"),
        ("rms_layernorm", "", "RMS norm"),
        ("forward", "scaled_upper_triang_masked_softmax_cuda", "scaled masked softmax"),
        ("fwd", "hopper/flash_api.cpp", "flash attention"),
        ("hopper_na2d_forward", "natten._libnatten", "neighborhood attention"),
        ("spline_weighting", "torch_spline_conv", "spline convolution"),
        ("box3d_overlap", "", None),
        ("forward", "my_operator", None),
        ("add_one", "utils", None),
    ],
)
def test_is_named(function: str, place: str, operator: str | None) -> None:
    known = known_operator(function, place)
    assert (known and known["operator"]) == operator


def test_says_what_to_use() -> None:
    known = known_operator("furthest_point_sampling_wrapper", "pointnet2_cuda")
    assert known is not None
    said = equivalents_of(known)
    assert "mx_driving.furthest_point_sampling(points, num_points)" in said
    assert said.endswith("without backward.")


def test_every_row_is_whole() -> None:
    functions = data_folder("reports") / "ascend_function"
    for operator, names, modules, _packages, bundled, equivalents, *_rest, source in rows("operators"):
        assert re.compile(names), operator
        assert re.compile(modules), operator
        assert names or modules, operator
        assert equivalents, operator
        assert source.startswith("https://"), operator
        for pair in bundled.split():
            assert (functions / f"{pair.rpartition(':')[2]}.py").is_file(), pair
    assert operators_of_libraries()["torch_scatter.*"]["operator"] == "scatter by index"


def test_the_pages_have_every_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Chinese one has the catalogue's words, and each English name below its Chinese one."""
    docs = Path(__file__).parents[2] / "docs"
    page, chinese = ((docs / f"operators{end}").read_text(encoding="utf-8") for end in (".md", ".zh.md"))
    monkeypatch.setattr(language, "_catalogue", None)
    monkeypatch.setenv(language.VARIABLE, "zh")
    for operator, *_cells, equivalents, differs, limits, _backward, _hardware, source in rows("operators"):
        assert f"| [{operator}]({source}) |" in page
        name = language._(operator)
        english = f"<br>{operator}" if name.lower() != operator.lower() else ""
        cells = (language._(cell) if cell else "" for cell in (equivalents, differs, limits))
        assert " | ".join([f"| [{name}]({source}){english}", *cells, ""]) in chinese
