"""Styles of libraries for language models, graphs, recommendation and speech."""

import importlib.util
from functools import lru_cache
from typing import Optional, Union

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


def kabsch(coords: Tensor, targets: Tensor):
    covariance = coords.transpose(-1, -2) @ targets
    u, _, vh = torch.linalg.svd(covariance, driver="gesvd" if covariance.is_cuda else None)  # expect: none
    sign = torch.linalg.det(u @ vh)  # expect: fallback torch.linalg.det
    return u @ vh, sign


def route(scores, top_k):
    weights, indices = torch.topk(scores, k=top_k, dim=-1, sorted=False)  # expect: partial torch.topk
    probabilities, chosen = torch.topk(torch.softmax(scores, dim=-1), top_k, dim=-1)  # expect: none
    best = torch.topk(scores, top_k, sorted=True)  # expect: none
    return weights, indices, probabilities, chosen, best


def experts(hidden, weight, offsets):
    grouped = torch._grouped_mm(hidden, weight, offs=offsets)  # expect: unknown torch._grouped_mm
    scaled = torch._scaled_mm(hidden, weight)  # expect: unsupported torch._scaled_mm; unknown torch._scaled_mm
    return grouped, scaled


class Projector(nn.Module):
    def __init__(self, size: int, heads: int):
        super().__init__()
        self.attention = nn.MultiheadAttention(size, heads)  # expect: unsupported torch.nn.MultiheadAttention
        self.encoder = torch.nn.TransformerEncoder(  # expect: unsupported torch.nn.TransformerEncoder
            nn.TransformerEncoderLayer(size, heads),
            num_layers=2,  # expect: none
        )
        self.cells = nn.ModuleList([torch.nn.RNNCell(size, size)])  # expect: unsupported torch.nn.RNNCell
        self.projection = nn.Linear(size, size, bias=False)  # expect: none

    def forward(self, x: Tensor, lengths: Tensor, mask: Optional[Tensor] = None):
        packed = pack_padded_sequence(x, lengths)  # expect: unsupported torch.nn.utils.rnn.pack_padded_sequence
        x, _ = pad_packed_sequence(packed)  # expect: unsupported torch.nn.utils.rnn.pad_packed_sequence
        x = pad_sequence([x[:, 0], x[:, 1]], batch_first=True)  # expect: none
        hard = F.gumbel_softmax(x, hard=True)  # expect: unsupported torch.nn.functional.gumbel_softmax
        return F.rms_norm(hard, (4,))  # expect: none


def distil(student, teacher):
    exact = F.kl_div(student, teacher, log_target=True)  # expect: partial torch.nn.functional.kl_div
    plain = F.kl_div(student, teacher, reduction="none", log_target=False)  # expect: none
    return exact + plain


def rotate(skew: Tensor, eye: Tensor):
    solved = torch.linalg.solve(eye + skew, eye - skew, left=False)  # expect: fallback torch.linalg.solve
    values, vectors = torch.linalg.eigh(skew, UPLO="U")  # expect: fallback torch.linalg.eigh
    inverse = torch.linalg.pinv(skew + 1e-8 * eye)  # expect: none
    return solved, values, vectors, inverse


def on_the_host(weight: Tensor, values: Tensor, fast: bool):
    w = weight.detach().to(torch.float64).cpu()
    solved = torch.linalg.solve(w, values.cpu())  # expect: none
    near = torch.cdist(values.cpu(), w)  # expect: none
    mixed = values.cpu()
    if fast:
        mixed = values
    far = torch.cdist(mixed, w)  # expect: unsupported torch.cdist
    return solved, near, far, torch.linalg.solve(values, w)  # expect: fallback torch.linalg.solve


def adjacency(rows: Tensor, columns: Tensor, values: Tensor, x: Tensor):
    matrix = torch.sparse_csr_tensor(rows, columns, values)  # expect: unsupported torch.sparse_csr_tensor
    return torch.sparse.mm(matrix, x)  # expect: unsupported torch.sparse.mm


class Buckets:
    def __init__(self, keys: Tensor, size: int):
        self.keys = keys
        self.host = torch.zeros(size).pin_memory()  # expect: none
        self.size = torch.zeros(1)

    def share(self):
        self.keys.share_memory_()  # expect: none
        self.size.share_memory_()  # expect: none
        return self


@torch.compiler.disable  # expect: none
def log_flags(flags: Tensor, group=None):
    dist.all_reduce(flags, op=dist.ReduceOp.BOR, group=group)  # expect: unsupported torch.distributed.ReduceOp.BOR
    dist.all_reduce(flags, dist.ReduceOp.MAX, group=group)  # expect: none
    dist.reduce(flags, 0, op=torch.distributed.ReduceOp.BAND)  # expect: unsupported torch.distributed.ReduceOp.BAND
    return dist.all_reduce(flags, op=dist.ReduceOp.AVG)  # expect: none


class Bits:
    BAND = 1

    def mixed(self, op):
        return op == Bits.BAND or op == self.BAND  # expect: none


def meshes(device_type: str, world_size: int):
    mesh = dist.init_device_mesh(device_type, (world_size,))  # expect: none
    return mesh, torch.distributed.new_group()  # expect: none


def clip(model: nn.Module, limit: float, norm: Union[int, float] = 2):
    torch.nn.utils.clip_grad_value_(model.parameters(), limit)  # expect: none
    return nn.utils.clip_grad_norm_(model.parameters(), limit)  # expect: unsupported torch.nn.utils.clip_grad_norm_


@lru_cache
def has_quantization() -> bool:
    return importlib.util.find_spec("torchao") is not None  # expect: none


def capture(stream_handle: int):
    room = (torch.backends.cuda.cublas_workspace_size())  # expect: absent torch.backends.cuda.cublas_workspace_size
    done = torch._C._cuda_clearCublasWorkspaces()  # expect: absent torch._C._cuda_clearCublasWorkspaces
    torch._C._nvtx.rangePushA("capture")  # expect: absent torch._C._nvtx.rangePushA
    torch._C._set_cudnn_allow_tf32(False)  # expect: none
    name = torch.typename(room if done is None else done)  # expect: none
    return name, torch._C._get_tracing_state()  # expect: none


def export(model: nn.Module, arguments):
    with torch.no_grad():  # expect: none
        program = torch.export.export(model, arguments)  # expect: unsupported torch.export.export
    return program


def quantize(module: nn.Module):
    return torch.quantization.quantize_dynamic(module)  # expect: unsupported torch.quantization.quantize_dynamic
