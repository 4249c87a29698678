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
    context_of_tensor_type,
    is_docstring,
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
    judged = context_of_device if names_device(index, first) else device_context
    return judged(index, VOCABULARY, first).verdict


@pytest.mark.parametrize(
    "text",
    [
        'torch.device("cuda")',
        'names = {"cuda": 1}\nnames[x.device.type]',
        'x.to("cuda:0")',
        'x.to(device="cuda")',
        'torch.zeros(3, device="cuda")',
        'with torch.autocast("cuda"): pass',
        'torch.load(path, map_location="cuda")',
        'torch.load(path, map_location={"cuda:1": "cpu"})',
        "torch.load(path, map_location=lambda storage, place: 'cuda:0')",
        'dist.init_process_group("nccl")',
        'torch.device("cuda" if ready else "cpu")',
        'torch.device("cuda:{}".format(rank))',
        'torch.device(("cuda"))',
        'torch.device(str("cuda"))',
        'torch.cuda.synchronize("cuda:1")',
        'if x.device.type == "cuda": pass',
        'if args.device in ("cuda", "cpu"): pass',
        'if device.startswith("cuda"): pass',
        'if re.match(r"cuda:\\d", device): pass',
        'where = "cuda"\nx.to(where)',
        'name = "cuda" if torch.cuda.is_available() else "cpu"',
        'if torch.cuda.is_available():\n    name = "cuda"\nelse:\n    name = "cpu"',
        'print("cuda" if torch.cuda.is_available() else "cpu")',
        'self.assertEqual(x.device.type, "cuda")',
        'for kind in ("cpu",) + ("cuda",) * count: x.to(kind)',
        'kinds = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])',
    ],
)
def test_certain(text: str) -> None:
    assert verdict(text) == CERTAIN


@pytest.mark.parametrize(
    "text",
    [
        'device = "cuda"',
        'self.device = "cuda"',
        'settings["device"] = "cuda"',
        'make(device="cuda")',
        'parser.add_argument("--device", default="cuda")',
        'parser.add_argument("--where", choices=["cpu", "cuda"])',
        'def f(device="cuda"): pass',
        'def f(where="cuda"):\n    return x.to(where)',
        'def f(device: Literal["cuda"]): pass',
        'kind: Literal["cpu"] | None = "cuda"',
        'config = {"device": "cuda"}',
        'for device in ["cuda"]: pass',
        'def default_device():\n    return "cuda"',
        'device += "cuda"',
        'use("cuda")\ndef use(device): pass',
        'os.environ.get("DEVICE", "cuda")',
        'devices.append("cuda")',
        'pytest.mark.parametrize("device", ["cuda"])',
        'move = {"cuda": torch.cuda.synchronize}',
        'names = {"cuda": 1}\nnames.get(device)',
        'if x.type == "cuda": pass',
        'where = "cuda"\nx.to(where)\nshow(where)',
        'devices = base + ["cuda"]',
    ],
)
def test_likely(text: str) -> None:
    assert verdict(text) == LIKELY


@pytest.mark.parametrize(
    "text",
    [
        'kind = ["cpu", "cuda"]',  # other devices beside it may be names as well
        'kinds = ["cpu"] + ["cuda"]',
        'name = "cuda"',
        'if name == "cuda": pass',
        'show("cuda")',
        'tf.device("cuda")',
        'x = "cuda".join(names)',
        'length = "cuda".length',
        'title = f"on {x}" + "cuda"',
        'title = "on %s" % (x,) + "cuda"',
        'names = ["a"] + ["cuda"]',
        'parser.add_argument("--name", default="cuda")',
        'class A(B, kind="cuda"): pass',
        'table = {1: "cuda"}',
        'def f():\n    device = "cuda"\n    return tf.run(device)',  # a library with devices of its own
    ],
)
def test_unclear(text: str) -> None:
    assert verdict(text) == UNCLEAR


@pytest.mark.parametrize(
    "text",
    [
        'print("cuda")',
        'raise ValueError("cuda")',
        '"cuda"',
        'settings["cuda"] = 1',
        'x = 1 if "cuda" else 2',
        'table = {"cuda": 1}',
        'device = {"cuda": 1, "npu": 2}[kind]',
        'devices = ["cuda", "npu"]',
        'devices = ["cpu"] + (["cuda"] if ready else []) + (["npu"] if able else [])',
        'class Device(Enum):\n    GPU = "cuda"\n    NPU = "npu"',
    ],
)
def test_no(text: str) -> None:
    assert verdict(text) == NO


@pytest.mark.skipif(sys.version_info < (3, 10), reason="match came with Python 3.10")
@pytest.mark.parametrize(
    ("subject", "more", "expected"),
    [("device", "", CERTAIN), ("x", "    case 'cpu': pass\n", UNCLEAR), ("x", "", UNCLEAR)],
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
        ('f"cuda{i}"', True),  # i may be ":0"; where it goes decides
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
        ('name = "cuda:0"', LIKELY),
        ('name = "cuda:" + str(i)', LIKELY),
        ('name = "cuda"', UNCLEAR),
        ('name: Annotated[str, option("cpu")] = "cuda"', UNCLEAR),
        ('print("cuda:0")', NO),
    ],
)
def test_a_device_with_an_index_is_hardly_anything_else(text: str, expected: str) -> None:
    index, [string] = strings(text)
    assert context_of_device(index, VOCABULARY, string).verdict == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('name = "nccl"', LIKELY),
        ('name = "NCCL"', UNCLEAR),
        ('if "nccl" in line: pass', UNCLEAR),
        ('name = "cpu:gloo,cuda:nccl"', CERTAIN),
    ],
)
def test_backends(text: str, expected: str) -> None:
    index, [string] = strings(text)
    assert context_of_backend(index, VOCABULARY, string).verdict == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('x.type("torch.cuda.FloatTensor")', CERTAIN),
        ('if x.type() in ["torch.cuda.FloatTensor"]: pass', CERTAIN),
        ('print("torch.cuda.FloatTensor")', LIKELY),
        ('"torch.cuda.FloatTensor"', NO),
    ],
)
def test_tensor_types(text: str, expected: str) -> None:
    index, [string] = strings(text)
    assert context_of_tensor_type(index, VOCABULARY, string).verdict == expected


def test_docstrings() -> None:
    index, [first, second] = strings('"""cuda"""\nx = "cuda"')
    assert (is_docstring(index, first), is_docstring(index, second)) == (True, False)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("device", True),
        ("x.device.type", True),
        ("args.device", True),
        ("settings['device']", True),
        ("str(device)", True),
        ("getattr(x, 'device')", True),
        ("x.get('backend')", True),
        ("x.type()", True),
        ("dist.get_backend()", True),
        ("device[0]", True),
        ("device[:4]", False),
        ("x or device", True),
        ("(device := x)", True),
        ("name", False),
        ("x.name", False),
        ("x.type(y)", False),
        ("1", False),
    ],
)
def test_names_that_say_device(source: str, expected: bool) -> None:
    node = ast.parse(source, mode="eval").body
    assert VOCABULARY.says_device(node) is expected


@pytest.mark.parametrize(("library", "expected"), [("onnxruntime", UNCLEAR), (".onnxruntime", LIKELY)])
def test_a_module_of_the_project_is_no_library_of_its_name(library: str, expected: str) -> None:
    text = f'from {library} import session\ndef f():\n    device = "cuda"\n    return session.run(device)'
    assert verdict(text) == expected
