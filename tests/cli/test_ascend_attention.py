"""Programs with flash_attn and xformers: the module that a result gets for them, and what imports it."""

from __future__ import annotations

import pytest

from tests.reading import rows


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from flash_attn import flash_attn_func, flash_attn_varlen_func as varlen\n"
            "from flash_attn.layers.rotary import apply_rotary_emb\n",
            "from ascend_attention import flash_attn_func, flash_attn_varlen_func as varlen\n"
            "from ascend_attention import apply_rotary_emb\n",
        ),
        (
            "import flash_attn\nprint(flash_attn.flash_attn_interface.flash_attn_func)\n",
            "import ascend_attention as flash_attn\nprint(flash_attn.flash_attn_interface.flash_attn_func)\n",
        ),
        ("import xformers.ops as xops\n", "import ascend_attention as xops\n"),
        (
            "from xformers.ops import memory_efficient_attention, LowerTriangularMask\n",
            "from ascend_attention import memory_efficient_attention, LowerTriangularMask\n",
        ),
        (
            "import xformers.ops\nprint(xformers.ops.memory_efficient_attention)\n",
            "import ascend_attention\nprint(ascend_attention.memory_efficient_attention)\n",
        ),
    ],
)
def test_each_way_to_import_it(result_of, before: str, after: str) -> None:
    result = result_of({"model.py": before})
    assert (result / "model.py").read_text() == after
    assert (result / "ascend_attention.py").is_file()


@pytest.mark.parametrize(
    "text",
    [
        "from flash_attn.bert_padding import unpad_input\n",
        "from flash_attn import flash_attn_with_kvcache\n",
        "from flash_attn import flash_attn_func\nprint(flash_attn_func(1, 2, 3, softcap=2.0))\n",
        "try:\n    from flash_attn import flash_attn_func\nexcept ImportError:\n    flash_attn_func = None\n",
        "from xformers.ops import SwiGLU, memory_efficient_attention\n",
        "import xformers\nimport xformers.ops\nprint(xformers.__version__)\n",
        "try:\n    from xformers.ops import unbind\nexcept ImportError:\n    unbind = None\n",
        "def f():\n    from xformers.ops import memory_efficient_attention as attend\n    return attend\n",
    ],
)
def test_a_file_that_uses_more_or_can_do_without_keeps_the_library(result_of, text: str) -> None:
    result = result_of({"model.py": text})
    assert (result / "model.py").read_text() == text
    assert not (result / "ascend_attention.py").exists()
    assert {row["Rule"] for row in rows(result, "manual_review")} <= {"NPU603", "NPU604"}


def test_where_one_file_needs_xformers_those_that_can_do_without_use_the_module_as_well(result_of) -> None:
    start = "try:\n    from xformers.ops import fmha\nexcept ImportError:\n    "
    files = {"train.py": start + "raise AssertionError('needed')\n", "block.py": start + "fmha = None\n"}
    result = result_of(files)
    for name, text in files.items():
        assert (result / name).read_text() == text.replace("xformers.ops", "ascend_attention")
