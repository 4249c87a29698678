"""What a fuzzer makes of real files: broken tokens, CUDA in any place, every syntax, odd bytes."""

from __future__ import annotations

import ast
import re
from random import Random

# What rules look for, to stand in any expression.
IDIOMS = (
    "torch.cuda.is_available()",
    "torch.cuda.current_device",
    "torch.device('cuda')",
    "torch.device(f'cuda:{rank}')",
    "'cuda:%d' % rank",
    "'cuda'",
    "b'cuda'",
    "'nccl'",
    "f'cuda:{rank!r:>{width}}'",
    "model.cuda(non_blocking=True)",
    "x.cuda",
    "x.to('cuda:' + str(i)).half()",
    "x.is_cuda",
    "dist.init_process_group('nccl', init_method='env://')",
    "os.environ['CUDA_VISIBLE_DEVICES']",
    "torch.cuda.amp.GradScaler()",
    "torch.backends.cudnn.benchmark",
    "getattr(torch, 'cuda').synchronize()",
    "torch.load(path, map_location=lambda s, l: s.cuda(0))",
    "device if device != 'cuda' else 'cuda:0'",
    "apex.amp.initialize(model, optimizer, opt_level='O1')",
    "nn.DataParallel(model).cuda()",
    "torch.cuda.get_device_capability()[0] >= 8",
)
# Around an expression, which stands at the hole.
WRAPPERS = (
    "(lambda *a, **k: {})()",
    "[{} for x in y if x]",
    "{{'cuda': {}, **z}}",
    "f(*[{}], device='cuda')",
    "({}).cuda()",
    "(x := {})",
    "({} if torch.cuda.is_available() else None)",
    "not ({})",
    "f'{{{}}}'",
    "(yield {})",
    "x[{}:, ...]",
    "torch.tensor({}, device=torch.device('cuda', 0))",
)
STATEMENTS = (
    "import torch.cuda as tc, os",
    "from torch import cuda, nn as n",
    "from torch.cuda import *",
    "with torch.cuda.device(0), open('cuda') as f: pass",
    "del torch.cuda, x",
    "global device; device = 'cuda'",
    "assert torch.cuda.is_available(), 'cuda'",
    "for torch.cuda.x in range(3): break",
    "def f(device='cuda', /, *, backend: 'nccl' = 'nccl') -> 'torch.cuda.Stream': return device",
    "class C(torch.cuda.Stream, metaclass=M): device = 'cuda'; x: str = 'cuda'",
    "@torch.cuda.amp.custom_fwd(cast_inputs=torch.float16)\nasync def g(): await x.cuda()",
    "try:\n    import apex\nexcept ImportError: torch.cuda.init()\nelse: pass\nfinally: x = 'cuda'",
    "while torch.cuda.memory_allocated() > (n := 3): continue",
    "if torch.cuda.is_available(): model.cuda()\nelse: model.cpu()",
    "x = y = torch.device('cuda'); z += 'cuda'",
    "device: torch.device = torch.device('cuda')",
    "r'''cuda\\''' 'cuda' \"nccl\"",
    "os.system('CUDA_VISIBLE_DEVICES=0 python -m torch.distributed.launch --nproc_per_node=8 train.py')",
)
# Syntax of later Pythons, which this one may refuse.
SYNTAX = (
    "match device:\n    case 'cuda' | torch.cuda: pass\n    case {'device': 'cuda', **r} if r: pass",
    "try: pass\nexcept* (RuntimeError, torch.cuda.OutOfMemoryError) as e: raise",
    "type D[T: (str, int), *Ts, **P] = torch.cuda.Stream | None",
    "def f[T = 'cuda'](x: T) -> T: return x.cuda()",
    "x = f'{torch.cuda.device_count() + len('cuda')!r} {'\\n'.join(['cuda'])}'",
    "x = t'{torch.cuda.device_count()} cuda'",
    "try: pass\nexcept ValueError, torch.cuda.CudaError: pass",
    "print(*x, (yield), sep='cuda')",
    "x = [*a, *torch.cuda.get_arch_list()]; x[*y] = 'cuda'",
    "with (torch.cuda.stream(s) as a, open('f')): pass",
    "async def f():\n    async with x as y: return [i async for i in torch.cuda.y]",
    "lambda x=torch.cuda.device_count(), /, *a: (yield)",
    "0o17 + 0x_ff + 1_000j; torch.cuda.init()",
    "print 'cuda'",
    "x = `torch.cuda`",
)
# Values of files that are no Python.
VALUES = (
    *("cuda", "cuda:0", "nccl", "gpu", "nvidia-smi", "CUDA_VISIBLE_DEVICES=0,1", "nvidia.com/gpu: 8"),
    *(
        "torch==1.11+cu113",
        "--gpus 8",
        "torchrun --nproc_per_node 8 train.py",
        "python train.py --device cuda",
    ),
    *(
        "${CUDA_VISIBLE_DEVICES:-0}",
        "$(nvidia-smi -L | wc -l)",
        "`which nvcc`",
        "<<EOF",
        "EOF",
        "#",
        "\\",
        "'",
    ),
    *(
        '"',
        "{{",
        "}}",
        "&a",
        "*a",
        "<<: *a",
        "? ",
        "!!python/object:os.system",
        "---",
        "...",
        "|",
        ">-",
        "\t",
    ),
    *("[", "]", "{", "}", ",", ":", "=", "%(cuda)s", "@", "&&", ";;", "in", "do", "done", "fi", "\0", "\x0c"),
)
ODD_TEXTS = (
    "\ufeff",
    "\x0c",
    "\u2028",
    "\x85",
    "ａ＝ｃｕｄａ",
    "显卡",
    "e\u0301",
    "\U0001d41c",
    "\x1b[31m",
    "\u202e",
)
ENCODINGS = ("utf-8", "utf-8-sig", "gbk", "latin-1", "utf-16", "utf-7", "shift_jis")

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


def mutated(text: str, python: bool, random: Random) -> str:
    """The text after one to four mutations."""
    ways = [_tokens, _lines, _odd, _ends]
    ways += [_spliced, _spliced, _wrapped, _statement, _statement] if python else [_value, _value, _value]
    for _ in range(random.randint(1, 4)):
        text = random.choice(ways)(text, random)
    return text


def encoded(text: str, python: bool, random: Random) -> bytes:
    """The text as bytes: mostly UTF-8, else with a cookie, and sometimes not what the cookie says."""
    if random.random() < 0.85:
        return text.encode("utf-8", "surrogatepass")
    encoding = random.choice(ENCODINGS)
    if python and random.random() < 0.8:
        text = f"# -*- coding: {encoding.removesuffix('-sig')} -*-\n{text}"
    if random.random() < 0.2:
        encoding = random.choice(ENCODINGS)
    return text.encode(encoding, random.choice(("replace", "backslashreplace")))


def _tokens(text: str, random: Random) -> str:
    """Tokens deleted, doubled or swapped."""
    parts = _TOKEN.findall(text)
    for _ in range(random.randint(1, 3)):
        if len(parts) < 2:
            break
        one, other = random.randrange(len(parts)), random.randrange(len(parts))
        what = random.randrange(4)
        if what == 0:
            del parts[one : one + random.randint(1, 4)]
        elif what == 1:
            parts.insert(one, parts[one])
        elif what == 2:
            parts[one], parts[other] = parts[other], parts[one]
        else:
            parts[one] = parts[other]
    return "".join(parts)


def _lines(text: str, random: Random) -> str:
    """Lines deleted, doubled, moved, indented, or joined to one."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at = random.randrange(len(lines))
    what = random.randrange(5)
    if what == 0:
        del lines[at : at + random.randint(1, 5)]
    elif what == 1:
        lines[at:at] = lines[at : at + random.randint(1, 5)]
    elif what == 2:
        lines.insert(random.randrange(len(lines)), lines.pop(at))
    elif what == 3:
        lines[at] = random.choice(("    ", "\t", " ")) + lines[at]
    else:
        lines[at] = lines[at].rstrip("\r\n") + random.choice(("; ", " \\\n", " "))
    return "".join(lines)


def _odd(text: str, random: Random) -> str:
    """A character that is rare in a random place."""
    at = random.randint(0, len(text))
    return text[:at] + random.choice(ODD_TEXTS) + text[at:]


def _ends(text: str, random: Random) -> str:
    """Other line ends, all or a part of them; or none at the end."""
    what = random.randrange(4)
    if what == 3:
        return text.rstrip("\n")
    newline = ("\r\n", "\r", "\n\n")[what]
    return text.replace("\n", newline, random.choice((-1, -1, len(text) // 60)))


def _value(text: str, random: Random) -> str:
    """A value of another file in the place of a token, or beside one."""
    parts = _TOKEN.findall(text)
    if not parts:
        return text
    at = random.randrange(len(parts))
    parts[at] = random.choice(VALUES) + random.choice(("", parts[at]))
    return "".join(parts)


def _spliced(text: str, random: Random) -> str:
    """An idiom of CUDA in the place of an expression."""
    return _replaced(text, random, lambda _source: random.choice(IDIOMS))


def _wrapped(text: str, random: Random) -> str:
    """An expression inside of another one."""
    return _replaced(text, random, lambda source: random.choice(WRAPPERS).format(source))


def _replaced(text: str, random: Random, new: object) -> str:
    assert callable(new)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return _tokens(text, random)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr) and hasattr(node, "end_lineno")]
    if not nodes:
        return text
    node = random.choice(nodes)
    lines = text.encode("utf-8", "surrogatepass").splitlines(keepends=True)
    # ast counts lines as Python does: where other ends stand in the text, another place is as good.
    first, last = min(node.lineno, len(lines)) - 1, min(node.end_lineno or 1, len(lines)) - 1
    start = sum(map(len, lines[:first])) + node.col_offset
    end = max(start, sum(map(len, lines[:last])) + (node.end_col_offset or 0))
    data = b"".join(lines)
    source = data[start:end].decode("utf-8", "replace")
    return b"".join((data[:start], new(source).encode(), data[end:])).decode("utf-8", "replace")


def _statement(text: str, random: Random) -> str:
    """A statement between two lines, as far in as the second one."""
    lines = text.split("\n")
    at = random.randrange(len(lines))
    indent = re.match(r"[ \t]*", lines[at])
    assert indent
    statement = random.choice(STATEMENTS + SYNTAX)
    lines[at:at] = [indent.group() + line for line in statement.split("\n")]
    return "\n".join(lines)
