"""Questions for CUDA whose answer turns round, and what that starts on an NPU."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.matchers.migrating import migrate

TURNED = {
    "the branch": """
        def scale(x):
            if x.is_cuda:
                return scale_triton(x)
            return x * 2
        """,
    "a kernel of Triton": """
        def scale(x):
            if x.device.type == "cuda" and x.numel() > 4:
                return _scale_triton_kernel[(1,)](x)
            return x * 2
        """,
    "the rest behind a guard": """
        def settings(device):
            if device.type != "cuda":
                return {}
            return dict(use_fp8=True)
        """,
    "the other branch": """
        def settings(device, options):
            if not device.type == "cuda":
                options.precision = "bf16"
            else:
                options.fp8 = True
        """,
    "a flag": "import torch\nuse_triton = torch.cuda.is_available()\n",
    "an answer": "def can_use_fp8(x):\n    return x.is_cuda\n",
    "an import": "import torch\nif torch.cuda.is_available():\n    from flash_attn import flash_attn_func\n",
    "Triton beside": "def fits(x):\n    return HAS_TRITON and x.is_cuda and x.dim() == 2\n",
    "a name": "def way(x):\n    return 'triton' if x.is_cuda else 'torch'\n",
    "a choice": "def pick(x):\n    return flash_attn(x) if x.is_cuda else x\n",
}

AS_BEFORE = {
    "the way for the CPU": """
        def scale(x):
            if not x.is_cuda:
                return scale_triton_on_cpu(x)
            return x * 2
        """,
    "a look at the capability": """
        import torch
        use_fp8 = torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 9)
        """,
    "a question for the library": """
        def scale(x):
            if x.is_cuda and HAS_XFORMERS:
                return xformers_attention(x)
            return x * 2
        """,
    "a case for NPUs": """
        def scale(x):
            if x.device.type == "npu":
                return x
            elif x.device.type == "cuda":
                return scale_triton(x)
        """,
    "an import that may fail": """
        import torch
        try:
            if not torch.cuda.is_available():
                raise ImportError
            from transformer_engine.pytorch.float8_tensor import Float8Tensor
        except ImportError:
            Float8Tensor = None
        """,
    "torch's own": """
        import torch
        if torch.cuda.is_available():
            from torch.utils._triton import has_triton
        """,
    "off": """
        def settings(x, use_triton):
            if x.is_cuda:
                return run(x, use_triton=False, use_fp8=use_triton)
        """,
    "another condition": """
        def settings(x):
            if not x.is_cuda:
                return x
            if x.use_fp8:
                return fp8_scale(x)
            return x + 1
        """,
}


def turned(text: str) -> list[str]:
    return [item.api for item in migrate(dedent(text)).findings if item.code == "NPU176"]


@pytest.mark.parametrize("case", TURNED)
def test_a_way_for_cuda_that_an_npu_now_takes_is_reported(case: str) -> None:
    assert len(turned(TURNED[case])) == 1


@pytest.mark.parametrize("case", AS_BEFORE)
def test_what_an_npu_does_as_before_is_not(case: str) -> None:
    assert turned(AS_BEFORE[case]) == []


def test_operators_for_cuda_alone_stop_where_they_are_called() -> None:
    text = """
    import torch
    KNOWN = {torch._weight_int4pack_mm: 1}
    torch._weight_int4pack_mm(x, w, 32, s)
    """
    found = migrate(dedent(text)).findings
    assert [(item.line, item.severity) for item in found if item.code == "NPU179"] == [
        (3, "info"),
        (4, "blocker"),
    ]


def test_keywords_that_are_handed_on_may_name_a_backend() -> None:
    text = "import torch\none = torch.compile(net, **options)\ntwo = torch.compile(net)\n"
    found = migrate(text).findings
    assert [item.severity for item in found if item.code == "NPU522"] == ["info", "warning"]
