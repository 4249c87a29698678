"""The functions of --replace-unsupported: on an NPU as torch's on the CPU, from operators with kernels."""

from __future__ import annotations

import importlib
import sys
import warnings

import pytest
import torch
import torch_npu  # noqa: F401
from torch.utils._python_dispatch import TorchDispatchMode

from migrator.api_support import support, tables
from migrator.api_support.versions import resolve
from migrator.data_folders import data_folder
from migrator.files.naming import EQUIVALENTS
from migrator.migrate.added_files import sources

F = torch.nn.functional
FUNCTIONS = data_folder("reports") / EQUIVALENTS
VERSIONS = ("2.1", "2.6", "2.13")
BEFORE_2 = ("scaled_dot_product_attention", "rms_norm", "isin")  # 1.11 lacks them


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("functions")
    (folder / "ascend_function").mkdir()
    for name, text in sources(file.stem for file in FUNCTIONS.glob("[!_]*.py")).items():
        (folder / "ascend_function" / f"{name}.py").write_text(text)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("ascend_function")
    sys.path.remove(str(folder))


def of_operators() -> set[str]:
    """The functions that stand for CUDA operators, of which test_operator_functions.py has the cases."""
    pairs = (pair.partition(":") for row in tables.rows("operators") for pair in row[4].split())
    return {own or theirs for theirs, _colon, own in pairs}


def real(*shape, low=-3.0, high=3.0):
    return torch.rand(shape) * (high - low) + low


def square(*shape):
    return real(*shape) + 10 * torch.eye(shape[-1])


def positive(*shape):
    half = real(*shape)
    return half @ half.transpose(-2, -1) + torch.eye(shape[-1])


def factor(*shape):
    return torch.linalg.cholesky(positive(*shape))


def places(*shape, size):
    return torch.randint(size, shape)


torch.manual_seed(0)
singular = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
edges = torch.tensor([-0.0, 0.0, 1.0, 2.0, -1.5, float("inf"), float("nan")])
wide = torch.tensor([-30.25, -4.5, -0.1, 1e-4, 0.7, 1.46, 1.99, 2.01, 3.0, 9.5, 41.0, 3e5])
numbers = torch.tensor([0, 1, 2, 3, 7])

# Of each function: torch's, and calls with their arguments.
CASES = {
    "cholesky": (torch.linalg.cholesky, [(positive(4, 4),), (positive(2, 3, 5, 5),), (torch.zeros(0, 0),)]),
    "cholesky_ex": (torch.linalg.cholesky_ex, [(positive(4, 4),), (positive(2, 3, 3), {"upper": True})]),
    "cholesky_solve": (torch.cholesky_solve, [(real(4, 2), factor(4, 4)), (real(2, 4, 3), factor(4, 4))]),
    "cholesky_inverse": (torch.cholesky_inverse, [(factor(4, 4),), (factor(3, 3).mT, True)]),
    "solve": (
        torch.linalg.solve,
        [
            *((square(4, 4), real(4, 2)), (square(2, 4, 4), real(4, 2)), (square(3, 3), real(3))),
            *((square(3, 3), real(2, 3), {"left": False}), (square(5, 5, 5), real(5, 5))),
        ],
    ),
    "solve_ex": (torch.linalg.solve_ex, [(square(4, 4), real(4, 2))]),
    "inv": (torch.linalg.inv, [(square(4, 4),), (square(5, 5, 5),), (torch.zeros(0, 3, 3),)]),
    "inv_ex": (torch.linalg.inv_ex, [(square(4, 4),), (square(2, 3, 3),)]),
    "det": (torch.linalg.det, [(square(4, 4),), (square(2, 3, 3),), (torch.zeros(0, 0),)]),
    "slogdet": (torch.linalg.slogdet, [(square(4, 4),), (-square(2, 3, 3),)]),
    "logdet": (torch.logdet, [(positive(4, 4),), (positive(2, 3, 3),)]),
    "lu_factor": (torch.linalg.lu_factor, [(square(4, 4),), (real(2, 3, 5),), (real(5, 3),)]),
    "lu_factor_ex": (torch.linalg.lu_factor_ex, [(square(4, 4),)]),
    "lu_solve": (
        torch.linalg.lu_solve,
        [(*torch.linalg.lu_factor(square(4, 4)), real(4, 2), {"adjoint": each}) for each in (False, True)],
    ),
    "matrix_exp": (torch.linalg.matrix_exp, [(real(4, 4, low=-1, high=1),), (real(2, 3, 3, low=-1),)]),
    "lgamma": (torch.lgamma, [(wide,), (real(3, 4),), (edges,), (numbers,), (real(4).half(),)]),
    "digamma": (torch.digamma, [(wide,), (real(3, 4),), (edges[2:],), (numbers,), (real(4).abs().half(),)]),
    "i0": (torch.i0, [(real(50, low=-30, high=30),), (numbers,), (real(4).half(),)]),
    "erfcx": (torch.special.erfcx, [(real(50, low=-4, high=30),), (torch.tensor(1e6),)]),
    "entr": (torch.special.entr, [(real(20),), (edges,), (numbers,)]),
    "xlog1py": (
        torch.special.xlog1py,
        [(real(3, 4), real(4, low=-0.9)), (edges, edges.flip(0)), (real(3), 2), (0.5, real(3, low=0))],
    ),
    "copysign": (
        torch.copysign,
        [(real(3, 4), real(4)), (real(4), -1), (edges[:5], -edges[:5]), (numbers, real(5))],
    ),
    "hypot": (
        torch.hypot,
        [(real(3, 4), real(4)), (edges[:5], real(5)), (torch.tensor(3e30), torch.tensor(4e30))],
    ),
    "heaviside": (torch.heaviside, [(edges, real(7)), (numbers - 2, numbers)]),
    "fmax": (torch.fmax, [(real(3, 4), real(4)), (edges, edges.flip(0)), (numbers, 3 - numbers)]),
    "fmin": (torch.fmin, [(real(3, 4), real(4)), (edges, edges.flip(0)), (numbers, real(5))]),
    "bitwise_left_shift": (
        torch.bitwise_left_shift,
        [(numbers, numbers), (numbers.int() - 3, 4), (5, numbers)],
    ),
    "bitwise_right_shift": (
        torch.bitwise_right_shift,
        [(numbers * 99, numbers), (-numbers * 99, numbers), (numbers.int() - 3, 1)],
    ),
    "logcumsumexp": (torch.logcumsumexp, [(real(3, 5), 0), (real(3, 5), -1), (torch.tensor(2.0), 0)]),
    "mode": (
        lambda *given, **named: torch.mode(*given, **named)[0],
        [
            (places(5, 7, size=3).float(),),
            (places(5, 7, size=3), 0),
            (places(4, 2, size=2), 1, {"keepdim": True}),
        ],
    ),
    "isin": (torch.isin, [(numbers, numbers[1:3]), (real(3), real(0)), (numbers, 2, {"invert": True})]),
    "scatter_reduce": (
        torch.scatter_reduce,
        [
            (real(4, 5), dim, places(3, 5, size=4), real(3, 5), how, {"include_self": own})
            for dim in (0, 1)
            for how in ("sum", "mean", "prod", "amax", "amin")
            for own in (True, False)
        ]
        + [(torch.ones(3), 0, torch.tensor([1, 1, 2, 1]), torch.ones(4), "amax")],
    ),
    "huber_loss": (F.huber_loss, [(real(3, 4), real(3, 4), {"delta": 0.7}), (real(5), real(5), "none")]),
    "assert_async": (torch._assert_async, [(torch.tensor(True),), (torch.tensor(2.0), "told")]),
    "rms_norm": (F.rms_norm, [(real(2, 3, 4), (4,), real(4)), (real(2, 3, 4), (3, 4), None, 1e-5)]),
    "scaled_dot_product_attention": (
        F.scaled_dot_product_attention,
        [
            (real(2, 3, 5, 4), real(2, 3, 6, 4), real(2, 3, 6, 7)),
            (real(3, 5, 4), real(3, 5, 4), real(3, 5, 4), {"is_causal": True, "scale": 0.3}),
            (real(5, 4), real(6, 4), real(6, 4), torch.arange(5)[:, None] > torch.arange(6)),
            (real(5, 4), real(6, 4), real(6, 4), real(5, 6)),
        ],
    ),
    "eigh": (torch.linalg.eigh, [(positive(4, 4),)]),
    "eigvalsh": (torch.linalg.eigvalsh, [(positive(4, 4), {"UPLO": "U"})]),
    "eig": (torch.linalg.eig, [(square(4, 4),)]),
    "eigvals": (torch.linalg.eigvals, [(square(4, 4),)]),
    "lstsq": (torch.linalg.lstsq, [(real(5, 3), real(5, 2)), (real(5, 3), real(5, 2), {"driver": "gels"})]),
}
ON_THE_CPU = {"eigh", "eigvalsh", "eig", "eigvals", "lstsq"}
NOT_DERIVED = {"heaviside", "eig"}  # torch has no derivative, or one that depends on a choice
ELSEWHERE = {"sparse_mm", "poisson", "HuberLoss", "RMSNorm"}  # have tests of their own
CALLS = [
    pytest.param(name, number, id=f"{name}-{number}")
    for name in CASES
    for number in range(len(CASES[name][1]))
]


class Operators(TorchDispatchMode):
    """Remembers the names of the operators that reach a device."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, operator, types, given=(), named=None):
        self.names.add(operator._schema.name.removeprefix("aten::"))
        return operator(*given, **(named or {}))


def run(function, given, device, derive=True):
    """The tensors that a call gives, and the gradients of those of its inputs that have some."""
    given, named = list(given), {}
    if isinstance(given[-1], dict):
        named = given.pop()
    given = [each.detach().to(device) if torch.is_tensor(each) else each for each in given]
    floats = [each for each in given if torch.is_tensor(each) and each.is_floating_point()]
    leaves = [each.requires_grad_() for each in floats] if derive else []
    found = function(*given, **named)
    results = [each for each in (found if isinstance(found, tuple) else (found,)) if torch.is_tensor(each)]
    derived = [each for each in results if each.requires_grad]
    gradients = []
    if derived and leaves:
        generator = torch.Generator().manual_seed(1)
        weights = [
            torch.randn(each.shape, generator=generator).to(each.device, each.dtype) for each in derived
        ]
        gradients = torch.autograd.grad(derived, leaves, weights, allow_unused=True)
        gradients = [
            torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, gradients)
        ]
    return results, gradients


@pytest.mark.parametrize(("name", "number"), CALLS)
def test_gives_what_torch_gives(functions, name: str, number: int) -> None:
    expected, calls = CASES[name]
    own = getattr(functions, name)
    if name == "mode":
        own = lambda *given, **named: functions.mode(*given, **named)[0]  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted, of_torch = run(expected, calls[number], "cpu", name not in NOT_DERIVED)
        with Operators() as seen:
            results, gradients = run(own, calls[number], "npu", name not in NOT_DERIVED)
    assert all(each.device.type == "npu" for each in (*results, *gradients))
    half = any(each.dtype == torch.float16 for each in wanted)
    close = {"rtol": 2e-3, "atol": 2e-3} if half else {"rtol": 1e-4, "atol": 1e-4}
    assert len(results) == len(wanted)
    for one, other in zip((*results, *gradients), (*wanted, *of_torch)):
        torch.testing.assert_close(one.cpu(), other, equal_nan=True, **close)
    if name not in ON_THE_CPU:
        for version in (*VERSIONS, "1.11") if name in BEFORE_2 else VERSIONS:
            lacking = {each for each in seen.names if support.kernel(each, resolve(version)) == "none"}
            assert not lacking - {"detach", "alias", "_to_copy"}, version


def test_each_function_has_a_case(functions) -> None:
    assert set(CASES) | ELSEWHERE | of_operators() == set(functions.__all__)


@pytest.mark.parametrize("name", ["solve", "inv", "cholesky"])
def test_what_torch_refuses_is_refused(functions, name: str) -> None:
    matrix = -torch.eye(3) if name == "cholesky" else singular
    given = (matrix.npu(), torch.ones(3, 1).npu())[: 2 if name == "solve" else 1]
    with pytest.raises(torch.linalg.LinAlgError):
        getattr(functions, name)(*given)
    failed = functions.inv_ex(singular.npu())[1]
    assert failed.item() == torch.linalg.inv_ex(singular)[1].item() == 3
    with pytest.raises(RuntimeError, match="told"):
        functions.assert_async(torch.zeros(1).npu(), "told")


def test_derivative_of_a_determinant_that_is_zero(functions) -> None:
    """Its cofactors; torch 2.13 gives zeros."""
    matrix = singular.npu().requires_grad_()
    (found,) = torch.autograd.grad(functions.det(matrix), matrix)
    assert found.tolist() == [[4, 4, -4], [-2, -2, 2], [0, 0, 0]]


def test_second_derivatives(functions) -> None:
    for name, given in (("inv", square(3, 3)), ("lgamma", real(4, low=0.5)), ("cholesky", positive(3, 3))):
        pairs = []
        for function, device in ((getattr(functions, name), "npu"), (CASES[name][0], "cpu")):
            leaf = given.to(device).requires_grad_()
            (first,) = torch.autograd.grad(function(leaf).square().sum(), leaf, create_graph=True)
            pairs.append(torch.autograd.grad(first.square().sum(), leaf)[0].cpu())
        torch.testing.assert_close(*pairs, rtol=1e-3, atol=1e-3)


def test_sparse_matrices(functions) -> None:
    """The emulated NPU has none: the sparse matrix lies on the CPU, the dense one on the NPU."""
    dense = real(3, 4) * (real(3, 4) > 0)
    right = real(4, 2)
    for sparse in (dense.to_sparse(), dense.to_sparse_csr()):
        on_npu, on_cpu = right.npu().requires_grad_(), right.clone().requires_grad_()
        leaf, twin = sparse.clone().requires_grad_(), sparse.clone().requires_grad_()
        found, wanted = functions.sparse_mm(leaf, on_npu), torch.sparse.mm(twin, on_cpu)
        torch.testing.assert_close(found.cpu(), wanted)
        found.square().sum().backward()
        wanted.square().sum().backward()
        torch.testing.assert_close(on_npu.grad.cpu(), on_cpu.grad)
        if sparse.layout == torch.sparse_coo:
            torch.testing.assert_close(leaf.grad.to_dense(), twin.grad.to_dense())


def test_counts_have_the_distribution(functions) -> None:
    rates = torch.tensor([0.0, 0.5, 8.0, 63.0, 200.0])
    found = functions.poisson(rates.npu().expand(4000, 5)).cpu()
    assert torch.equal(found, found.round())
    assert found[:, 0].abs().sum() == 0
    torch.testing.assert_close(found.mean(0), rates, rtol=0.05, atol=0.05)
    torch.testing.assert_close(found.var(0), rates, rtol=0.15, atol=0.05)


def test_classes(functions) -> None:
    x, y = real(3, 4), real(3, 4)
    loss = functions.HuberLoss("sum", delta=0.3)
    torch.testing.assert_close(loss(x.npu(), y.npu()).cpu(), torch.nn.HuberLoss("sum", delta=0.3)(x, y))
    own, other = functions.RMSNorm(4, eps=1e-4).npu(), torch.nn.RMSNorm(4, eps=1e-4)
    other.load_state_dict({"weight": real(4)})
    own.load_state_dict(other.state_dict())
    torch.testing.assert_close(own(x.npu()).cpu(), other(x))
    assert repr(own) == repr(other)


def test_round_trips_say_so(functions) -> None:
    sys.modules["ascend_function._on_cpu"]._told.clear()
    with pytest.warns(UserWarning, match="linalg_eigh has no NPU kernel: it runs on the CPU"):
        functions.eigh(positive(2, 2).npu())
