"""Train ResNet-50 on CIFAR-10."""
import os

import mindspore as ms
from mindspore import context, nn
from mindspore.communication.management import get_group_size, get_rank, init

from config import get_config
from dataset import create_dataset
from resnet import resnet50


def set_up(config):
    """The device and, of several ranks, which one this is."""
    context.set_context(mode=context.GRAPH_MODE, device_target=config.device_target)
    if not config.run_distribute:
        if config.device_target == "GPU":
            context.set_context(device_id=int(os.getenv("DEVICE_ID", "0")))
        return 0, 1
    if config.device_target == "GPU":
        init("nccl")
    else:
        init()
    rank, size = get_rank(), get_group_size()
    assert size == int(os.getenv("DEVICE_NUM", size))
    context.set_auto_parallel_context(
        device_num=size, parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True
    )
    return rank, size


class Losses(ms.Callback):
    """Prints the loss of each step, and keeps the last one."""

    last = 0.0

    def on_train_step_end(self, run_context):
        step = run_context.original_args()
        self.last = float(step.net_outputs.asnumpy())
        print(f"epoch {step.cur_epoch_num} step {step.cur_step_num} loss {self.last:.6f}", flush=True)


def main():
    config = get_config()
    ms.set_seed(1)
    rank, size = set_up(config)
    data = create_dataset(config, True, rank, size)
    network = resnet50(config.class_num)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(
        network.trainable_params(), config.lr * size, config.momentum, config.weight_decay,
        loss_scale=config.loss_scale,
    )
    manager = ms.FixedLossScaleManager(config.loss_scale, drop_overflow_update=False)
    level = config.amp_level if config.device_target == "GPU" else "O0"
    model = ms.Model(network, loss, optimizer, loss_scale_manager=manager, amp_level=level)
    losses = Losses()
    callbacks = [losses, ms.TimeMonitor()]
    if rank == 0:
        kept = ms.CheckpointConfig(keep_checkpoint_max=3)
        callbacks.append(ms.ModelCheckpoint("resnet50", config.output_path, kept))
    if config.steps:
        data = data.take(config.steps)
    model.train(config.epochs, data, callbacks, dataset_sink_mode=config.device_target == "GPU")
    if rank == 0:
        print(f"FINAL loss={losses.last:.6f}")


if __name__ == "__main__":
    main()
