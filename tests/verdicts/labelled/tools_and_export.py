import importlib

import torch
import torch as pt
import torch.func as ft
import torch.nn as nn
import torch.nn.functional
import torch.nn.utils as nn_utils
import torch.sparse
import torch.utils.dlpack
from torch import func, from_dlpack, jit, onnx
from torch.export import export, save as save_program  # expect: none
from torch.func import functional_call, jacrev, vmap  # expect: unsupported torch.func.jacrev
from torch.nn.parameter import Parameter
from torch.utils import checkpoint, dlpack, tensorboard
from torch.utils.mobile_optimizer import optimize_for_mobile  # expect: none

Conv = nn.Conv2d
Pool = nn.MaxPool2d  # expect: unsupported torch.nn.MaxPool2d
LAYERS = {"relu": nn.ReLU, "rrelu": nn.RReLU, "gelu": nn.GELU}  # expect: unsupported torch.nn.RReLU
ACTIVATIONS = [torch.nn.functional.relu, torch.nn.functional.gumbel_softmax]  # expect: unsupported torch.nn.functional.gumbel_softmax
distance = pt.cdist  # expect: unsupported torch.cdist


def build(kind="rrelu", pool=nn.MaxPool1d):  # expect: unsupported torch.nn.MaxPool1d
    layer = getattr(nn, "AvgPool3d")(2)  # expect: unsupported torch.nn.AvgPool3d
    linear = getattr(nn, "Linear")(1, 1)  # expect: none
    module = importlib.import_module("torch.nn")
    return layer, linear, module, LAYERS[kind], pool, isinstance(layer, nn.MaxPool3d)  # expect: none


def gradients(model, x):
    first = ft.hessian(model)(x)  # expect: unsupported torch.func.hessian
    second = func.jacfwd(model)(x)  # expect: unsupported torch.func.jacfwd
    third = torch.func.vjp(model, x)  # expect: unsupported torch.func.vjp
    fourth = vmap(model)(x)  # expect: unsupported torch.func.vmap
    fifth = functional_call(model, {}, x)  # expect: none
    sixth = torch.autograd.grad(x.sum(), x)  # expect: none
    seventh = torch.autograd.functional.jacobian(model, x)  # expect: none
    with torch.no_grad():  # expect: none
        eighth = checkpoint.checkpoint(model, x)  # expect: none
    return first, second, third, fourth, fifth, sixth, seventh, eighth


def exports(model, x):
    program = export(model, (x,))  # expect: unsupported torch.export.export
    save_program(program, "m.pt2")  # expect: unsupported torch.export.save
    loaded = torch.export.load("m.pt2")  # expect: unsupported torch.export.load
    scripted = jit.script(model)  # expect: none
    mobile = optimize_for_mobile(scripted)  # expect: unsupported torch.utils.mobile_optimizer.optimize_for_mobile
    onnx.export(model, x, "m.onnx")  # expect: none
    capsule = dlpack.to_dlpack(x)  # expect: unsupported torch.utils.dlpack.to_dlpack
    back = from_dlpack(capsule)  # expect: unsupported torch.from_dlpack
    again = torch.utils.dlpack.from_dlpack(capsule)  # expect: unsupported torch.utils.dlpack.from_dlpack
    writer = tensorboard.SummaryWriter()  # expect: none
    return loaded, mobile, back, again, writer


def quantize(x: pt.Tensor):
    q = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)  # expect: unsupported torch.quantize_per_tensor
    p = torch.quantize_per_channel(x, x, x, 0, torch.qint8)  # expect: unsupported torch.quantize_per_channel
    ints = q.int_repr()  # expect: unsupported torch.Tensor.int_repr
    scheme = q.qscheme()  # expect: unsupported torch.Tensor.qscheme
    plain = q.dequantize()  # expect: fallback torch.Tensor.dequantize
    small = x.to(torch.bfloat16)  # expect: none
    return p, ints, scheme, plain, small


def recurrent(packed):
    a = nn_utils.rnn.pad_packed_sequence(packed)  # expect: unsupported torch.nn.utils.rnn.pad_packed_sequence
    b = nn_utils.clip_grad_norm(packed, 1)  # expect: unsupported torch.nn.utils.clip_grad_norm
    c = nn_utils.parameters_to_vector(packed)  # expect: none
    d = torch.scatter_reduce(packed, 0, packed, packed, "sum")  # expect: unsupported torch.scatter_reduce
    e = torch.index_reduce(packed, 0, packed, packed, "prod")  # expect: fallback torch.index_reduce
    f = torch.histogram(packed)  # expect: fallback torch.histogram
    g = torch.nextafter(packed, packed)  # expect: fallback torch.nextafter
    h = torch.lcm(packed, packed)  # expect: fallback torch.lcm
    return a, b, c, d, e, f, g, h


def wide(x, n):
    eigen = torch.eye(n, dtype=torch.float64)  # expect: partial torch.eye
    hist = torch.histc(torch.ones_like(x).double())  # expect: partial torch.histc; partial torch.Tensor.double
    both = torch.matmul(x.to(torch.float64), eigen)  # expect: partial torch.matmul
    z = torch.full((2,), 1.0, dtype=torch.float64)  # expect: partial torch.full
    cov = torch.cov(x.new_zeros(2, 2, dtype=torch.double))  # expect: partial torch.cov
    index = torch.zeros(n, dtype=torch.int64)  # expect: none
    flags = torch.ones(n, dtype=torch.bool)  # expect: none
    halves = torch.eye(n, dtype=torch.float16)  # expect: none
    linear = nn.Linear(2, 2, dtype=torch.float64)  # expect: partial torch.nn.Linear
    table = nn.Embedding(4, 4, dtype=torch.float64)  # expect: none
    single = torch.sum(x, dtype=torch.float32)  # expect: none
    complexes = nn.Parameter(torch.ones(2, dtype=torch.complex64))  # expect: partial torch.ones
    torch.testing.assert_close(torch.zeros(2, dtype=torch.float64), x)  # expect: none
    summed = torch.sum(x, dtype=torch.float64)  # expect: partial torch.sum
    return eigen, hist, both, z, cov, index, flags, halves, linear, table, summed


class Scaled(Parameter):  # expect: none
    pass


PRIVATE = torch._C._VariableFunctions  # expect: none
SIZES = (torch.Size([1]), torch.finfo(torch.float16).max, torch.iinfo(torch.int32).max)  # expect: none
VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])  # expect: none
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")  # expect: none
GENERATOR = torch.Generator(device=DEVICE).manual_seed(0)  # expect: none
LAUNCHED = torch.distributed.is_available() and torch.distributed.is_initialized()  # expect: none
