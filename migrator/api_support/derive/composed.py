"""api_db/composed.csv: APIs that are Python code, and the aten operators that they come to on an NPU.

    npumigrate emulate --report /tmp/report -- python -m migrator.api_support.derive.composed

Each program is run with the real torch_npu, on an emulated NPU. The operators are those that reach the device,
forward and backward; whether they have kernels is in kernels.csv, for each version. A program that fails leaves
no row, and is named.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from migrator.api_support import tables
from migrator.data_folders import data_folder

COLUMNS = ("api", "operators", "source")
# ``x`` is 4 by 4, ``seq`` 2 sequences of 3 steps with 8 features, and both want gradients; ``net`` is a Linear.
PROGRAMS = {
    "torch.Tensor.is_shared": "x.is_shared()",
    "torch.Tensor.pin_memory": "torch.ones(4).pin_memory()",
    "torch.Tensor.share_memory_": "torch.ones(4).share_memory_(); x.detach().share_memory_()",
    "torch.compiler.allow_in_graph": "torch.compiler.allow_in_graph(same)(x)",
    "torch.compiler.assume_constant_result": "torch.compiler.assume_constant_result(same)(x)",
    "torch.compiler.disable": "torch.compiler.disable(same)(x)",
    "torch.compiler.list_backends": "torch.compiler.list_backends()",
    "torch.compiler.reset": "torch.compiler.reset()",
    "torch.from_dlpack": "torch.from_dlpack(x.detach())",
    "torch.func.functionalize": "torch.func.functionalize(twice)(x)",
    "torch.func.hessian": "torch.func.hessian(lambda y: (y * y).sum())(x.detach())",
    "torch.func.jacfwd": "torch.func.jacfwd(twice)(x.detach())",
    "torch.func.jacrev": "torch.func.jacrev(twice)(x.detach())",
    "torch.func.jvp": "torch.func.jvp(twice, (x.detach(),), (x.detach(),))",
    "torch.func.vjp": "torch.func.vjp(twice, x.detach())[1](x.detach())",
    "torch.func.vmap": "torch.func.vmap(twice)(x.detach())",
    "torch.is_deterministic_algorithms_warn_only_enabled": "torch.is_deterministic_algorithms_warn_only_enabled()",
    "torch.nn.AdaptiveLogSoftmaxWithLoss": (
        "nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 6]).npu()(x, torch.tensor([0, 4, 8, 1]).npu()).loss.backward()"
    ),
    "torch.nn.CosineEmbeddingLoss": (
        "nn.CosineEmbeddingLoss()(x, x.detach() + 1, torch.tensor([1, -1, 1, -1]).npu()).backward()"
    ),
    "torch.nn.Module.share_memory": "nn.Linear(2, 2).share_memory()",
    "torch.nn.MultiheadAttention": "nn.MultiheadAttention(8, 2, batch_first=True).npu()(seq, seq, seq)[0].sum().backward()",
    "torch.nn.RNNBase": "nn.RNNBase('RNN_TANH', 8, 4).npu()",
    "torch.nn.RNNCell": "nn.RNNCell(8, 4).npu()(seq[:, 0]).sum().backward()",
    "torch.nn.RNN": "nn.RNN(8, 4).npu()(seq)[0].sum().backward()",
    "torch.nn.RReLU": "nn.RReLU().npu()(x).sum().backward()",
    "torch.nn.TransformerDecoder": (
        "nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 1).npu()(seq, seq).sum().backward()"
    ),
    "torch.nn.TransformerEncoder": (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1).npu()(seq).sum().backward()"
    ),
    "torch.nn.functional.gumbel_softmax": "F.gumbel_softmax(x, hard=True).sum().backward()",
    "torch.nn.functional.multilabel_soft_margin_loss": "F.multilabel_soft_margin_loss(x, (x > 0).float()).backward()",
    "torch.nn.functional.triplet_margin_with_distance_loss": (
        "F.triplet_margin_with_distance_loss(x, x.detach() + 1, x.detach() - 1).backward()"
    ),
    "torch.nn.modules.module.register_module_buffer_registration_hook": (
        "nn.modules.module.register_module_buffer_registration_hook(lambda *_: None).remove()"
    ),
    "torch.nn.modules.module.register_module_full_backward_pre_hook": (
        "nn.modules.module.register_module_full_backward_pre_hook(lambda *_: None).remove()"
    ),
    "torch.nn.modules.module.register_module_module_registration_hook": (
        "nn.modules.module.register_module_module_registration_hook(lambda *_: None).remove()"
    ),
    "torch.nn.modules.module.register_module_parameter_registration_hook": (
        "nn.modules.module.register_module_parameter_registration_hook(lambda *_: None).remove()"
    ),
    "torch.nn.utils.clip_grad_norm": "net(x).sum().backward(); nn.utils.clip_grad_norm(net.parameters(), 1.0)",
    "torch.nn.utils.clip_grad_norm_": "net(x).sum().backward(); nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
    "torch.nn.utils.rnn.pack_padded_sequence": (
        "nn.utils.rnn.pack_padded_sequence(seq, torch.tensor([3, 2]), batch_first=True).data.sum().backward()"
    ),
    "torch.nn.utils.rnn.pack_sequence": "nn.utils.rnn.pack_sequence([seq[0], seq[1]])",
    "torch.nn.utils.rnn.pad_packed_sequence": (
        "nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_padded_sequence(seq, torch.tensor([3, 2])"
        ", batch_first=True))[0].sum().backward()"
    ),
    "torch.nn.utils.rnn.unpack_sequence": "nn.utils.rnn.unpack_sequence(nn.utils.rnn.pack_sequence([seq[0], seq[1]]))",
    "torch.nn.utils.rnn.unpad_sequence": "nn.utils.rnn.unpad_sequence(seq, torch.tensor([3, 2]), batch_first=True)",
    "torch.optim.Adadelta.step": "step(torch.optim.Adadelta(net.parameters()))",
    "torch.optim.Adam.step": "step(torch.optim.Adam(net.parameters()))",
    "torch.optim.LBFGS.step": "step(torch.optim.LBFGS(net.parameters(), max_iter=2), lambda: net(x).sum())",
    "torch.utils.dlpack.from_dlpack": "torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x.detach()))",
    "torch.utils.dlpack.to_dlpack": "torch.utils.dlpack.to_dlpack(x.detach())",
    "torch.linalg.pinv": "torch.linalg.pinv(x.detach())",
    "torch.istft": "torch.istft(torch.stft(torch.ones(64).npu(), 16, return_complex=True), 16)",
    "torch.nn.functional.rms_norm": "F.rms_norm(x, (4,)).sum().backward()",
    "torch.split_with_sizes": "torch.split_with_sizes(x, [1, 3])",
    "torch.typename": "torch.typename(x)",
}


def main(out: Path) -> int:
    """Run the programs and write the table; 1 where one fails."""
    import torch
    import torch_npu  # noqa: F401
    from torch import nn
    from npumigrate_emulator.compute import work

    source = f"torch {torch.__version__.partition('+')[0]} with torch_npu {torch_npu.__version__} executed"
    rows, failed = [], 0
    for api, program in sorted(PROGRAMS.items()):
        torch.manual_seed(0)
        x = torch.randn(4, 4).npu().requires_grad_()
        net = nn.Linear(4, 4).npu()

        def step(optimizer: Any, *closure: Any) -> None:
            net(x).sum().backward()
            optimizer.step(*closure)

        names = {
            "torch": torch,
            "nn": nn,
            "F": nn.functional,
            "x": x,
            "net": net,
            "seq": torch.randn(2, 3, 8).npu().requires_grad_(),
            "same": lambda y: y,
            "twice": lambda y: 2 * y,
            "step": step,
        }
        before = work()["0"]["operators"]
        try:
            exec(program, names)
        except Exception as error:
            print(f"{api}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            failed = 1
            continue
        ran = {
            name.partition("::")[2].partition(".")[0]
            for name, calls in work()["0"]["operators"].items()
            if calls > before.get(name, 0)
        }
        rows.append((api, " ".join(sorted(ran)), source))
    tables.write(out / "composed.csv", COLUMNS, rows)
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else data_folder("api_db")))
