"""Where a string goes, and so whether it is a device: snippet and verdict."""

from __future__ import annotations

import ast
import re
import sys

import pytest

from migrator.names.device_context import CERTAIN, LIKELY, NO, UNCLEAR, device_context
from migrator.names.device_strings import (
    context_of_backend,
    context_of_device,
    names_backend,
    names_device,
    names_tensor_type,
    written,
)
from migrator.names.device_vocabulary import DeviceVocabulary
from migrator.names.index import ModuleIndex
from migrator.names.tree import String

VOCABULARY = DeviceVocabulary(
    apis={
        "torch.device": (0, "device", "type"),
        "torch.autocast": (0, "device_type"),
        "torch.load": (1, "map_location"),
        "torch.distributed.init_process_group": (0, "backend"),
        ".to": (0, "device"),
    },
    keywords=frozenset({"device", "map_location", "backend"}),
    never=frozenset({"print", "info", "join", "open", "ValueError"}),
    option_calls=frozenset({"add_argument", "field", "Option"}),
    hint=re.compile(r"(?:^|_)(?:device|accelerator|backend)(?:$|_|s$)|^dev$", re.IGNORECASE),
    foreign=frozenset({"tensorflow", "onnxruntime"}),
)
FRAME = "import torch\nimport torch.distributed as dist\nimport tensorflow as tf\nimport re\n{}\n"


def strings(text: str) -> tuple[ModuleIndex, list[String]]:
    index = ModuleIndex(FRAME.format(text), {"cuda", "nccl", "NCCL"})
    found = [node for node in index.strings if re.search("cuda|nccl", written(index, node), re.IGNORECASE)]
    return index, sorted(found, key=index.start)


def verdict(text: str) -> str:
    """What is said of the first string in a text with CUDA or NCCL in it."""
    index, [first, *_] = strings(text)
    return device_context(index, VOCABULARY, first).verdict


# Places that the examples of the rules do not have.
PLACES = {
    CERTAIN: [
        'torch.cuda.synchronize("cuda:1")',
        'if torch.cuda.is_available():\n    name = "cuda"\nelse:\n    name = "cpu"',
        'print("cuda" if torch.cuda.is_available() else "cpu")',
        'self.assertEqual(x.device.type, "cuda")',
        'for kind in ("cpu",) + ("cuda",) * count: x.to(kind)',
        'kinds = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])',
    ],
    LIKELY: [
        'settings["device"] = "cuda"',
        'parser.add_argument("--where", choices=["cpu", "cuda"])',
        'def f(where="cuda"):\n    return x.to(where)',
        'def f(device: Literal["cuda"]): pass',
        'kind: Literal["cpu"] | None = "cuda"',
        'for device in ["cuda"]: pass',
        'def default_device():\n    return "cuda"',
        'use("cuda")\ndef use(device): pass',
        'os.environ.get("DEVICE", "cuda")',
        'devices.append("cuda")',
        'pytest.mark.parametrize("device", ["cuda"])',
        'move = {"cuda": torch.cuda.synchronize}',
        'if x.type == "cuda": pass',
        'where = "cuda"\nx.to(where)\nshow(where)',
        'kinds = ["cpu"] + ["cuda"]',
        'devices = base + ["cuda"]',
    ],
    UNCLEAR: [
        'length = "cuda".length',
        'title = f"on {x}" + "cuda"',
        'title = "on %s" % (x,) + "cuda"',
        'names = ["a"] + ["cuda"]',
        'parser.add_argument("--name", default="cuda")',
        'class A(B, kind="cuda"): pass',
    ],
    NO: [
        'x = 1 if "cuda" else 2',
        'device = {"cuda": 1, "npu": 2}[kind]',
        'devices = ["cpu"] + (["cuda"] if ready else []) + (["npu"] if able else [])',
    ],
}


@pytest.mark.parametrize(
    ("expected", "text"), [(word, text) for word, texts in PLACES.items() for text in texts]
)
def test_places(expected: str, text: str) -> None:
    assert verdict(text) == expected


@pytest.mark.skipif(sys.version_info < (3, 10), reason="match came with Python 3.10")
@pytest.mark.parametrize(
    ("subject", "more", "expected"),
    [("device", "", CERTAIN), ("x", "    case 'cpu': pass\n", LIKELY), ("x", "", UNCLEAR)],
)
def test_cases(subject: str, more: str, expected: str) -> None:
    assert verdict(f"match {subject}:\n    case 'cuda': pass\n{more}") == expected


def test_the_reason_says_what_decided() -> None:
    index, [string] = strings('torch.load(path, map_location="cuda")')
    context = device_context(index, VOCABULARY, string)
    assert (context.reason, context.api) == ("load(map_location=…)", "map_location")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"cuda"', True),
        ('"cuda:0"', True),
        ('"cuda:"', True),
        ('"cuda:%d"', True),
        ('"cuda:{}"', True),
        ('f"cuda:{i}"', True),
        ('f"cuda{i}"', False),
        ('f"{x}cuda"', False),
        ('"cuda is fast"', False),
        ('"cuda-0"', False),
        ('re.match(r"cuda:\\d+", x)', True),
        ('show(r"cuda:\\d+")', False),
    ],
)
def test_what_looks_like_a_device(source: str, expected: bool) -> None:
    index, [string] = strings(f"mark({source})")
    assert names_device(index, string) is expected


def test_what_looks_like_a_backend_or_a_tensor_type() -> None:
    assert all(map(names_backend, ["nccl", "NCCL", "cpu:gloo,cuda:nccl", "cuda:nccl"]))
    assert not any(map(names_backend, ["nccl2", "cuda:0", "cpu:gloo", "a:cuda,b:c", "use nccl"]))
    assert names_tensor_type("torch.cuda.FloatTensor")
    assert not names_tensor_type("torch.cuda.Event")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('name = "cuda:" + str(i)', LIKELY),
        ('name = "cuda"', UNCLEAR),
        ('name: Annotated[str, option("cpu")] = "cuda"', UNCLEAR),
    ],
)
def test_a_device_with_an_index_is_hardly_anything_else(text: str, expected: str) -> None:
    index, [string] = strings(text)
    assert context_of_device(index, VOCABULARY, string).verdict == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('if "nccl" in line: pass', UNCLEAR),
        ('name = "cpu:gloo,cuda:nccl"', CERTAIN),
    ],
)
def test_backends(text: str, expected: str) -> None:
    index, [string] = strings(text)
    assert context_of_backend(index, VOCABULARY, string).verdict == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x.device.type", True),
        ("settings['device']", True),
        ("getattr(x, 'device')", True),
        ("device[:4]", False),
        ("x or device", True),
        ("(device := x)", True),
        ("x.name", False),
        ("x.type(y)", False),
    ],
)
def test_names_that_say_device(source: str, expected: bool) -> None:
    node = ast.parse(source, mode="eval").body
    assert VOCABULARY.says_device(node) is expected
