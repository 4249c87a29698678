"""ResNet-50."""
from mindspore import nn, ops


def conv(inputs, outputs, size, stride=1):
    return nn.Conv2d(inputs, outputs, size, stride, "pad", size // 2, weight_init="HeNormal")


class Bottleneck(nn.Cell):
    """1x1, 3x3 and 1x1 convolutions beside a short cut."""

    expansion = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * self.expansion
        self.branch = nn.SequentialCell(
            conv(inputs, width, 1), nn.BatchNorm2d(width), nn.ReLU(),
            conv(width, width, 3, stride), nn.BatchNorm2d(width), nn.ReLU(),
            conv(width, outputs, 1), nn.BatchNorm2d(outputs),
        )
        self.short_cut = nn.SequentialCell()
        if stride != 1 or inputs != outputs:
            self.short_cut = nn.SequentialCell(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.relu(self.branch(x) + self.short_cut(x))


class ResNet(nn.Cell):
    """Four stages of blocks between a stem and a classifier."""

    def __init__(self, blocks=(3, 4, 6, 3), class_num=10):
        super().__init__()
        self.stem = nn.SequentialCell(
            conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, pad_mode="same")
        )
        inputs, stages = 64, []
        for stage, count in enumerate(blocks):
            width = 64 * 2**stage
            for place in range(count):
                stages.append(Bottleneck(inputs, width, 2 if stage and not place else 1))
                inputs = width * Bottleneck.expansion
        self.stages = nn.SequentialCell(stages)
        self.classifier = nn.Dense(inputs, class_num)

    def construct(self, x):
        x = self.stages(self.stem(x))
        return self.classifier(ops.mean(x, (2, 3)))


def resnet50(class_num=10):
    return ResNet(class_num=class_num)
