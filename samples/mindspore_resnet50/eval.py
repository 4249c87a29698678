"""The accuracy of a checkpoint on CIFAR-10."""
import mindspore as ms
from mindspore import nn

from config import get_config
from dataset import create_dataset
from resnet import resnet50


def main():
    config = get_config()
    ms.set_context(mode=ms.GRAPH_MODE, device_target=config.device_target)
    network = resnet50(config.class_num)
    ms.load_param_into_net(network, ms.load_checkpoint(config.checkpoint))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ms.Model(network, loss, metrics={"accuracy": nn.Accuracy()})
    print(model.eval(create_dataset(config, False), dataset_sink_mode=False))


if __name__ == "__main__":
    main()
