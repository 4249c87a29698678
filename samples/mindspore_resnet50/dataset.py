"""CIFAR-10, each rank its share; or random images."""
import numpy as np

import mindspore as ms
import mindspore.dataset as ds
from mindspore.dataset import transforms, vision


def create_dataset(config, training, rank=0, size=1):
    if config.synthetic:
        images = np.random.RandomState(rank).rand(64, 3, config.image_size, config.image_size)
        labels = np.arange(64) % config.class_num
        columns = {"image": images.astype(np.float32), "label": labels.astype(np.int32)}
        return ds.NumpySlicesDataset(columns, shuffle=False).batch(config.batch_size, drop_remainder=True)
    data = ds.Cifar10Dataset(
        config.data_path, "train" if training else "test", num_parallel_workers=4, shuffle=training,
        num_shards=size, shard_id=rank,
    )
    steps = [vision.RandomCrop(32, 4), vision.RandomHorizontalFlip()] if training else []
    steps += [
        vision.Resize(config.image_size),
        vision.Rescale(1.0 / 255, 0.0),
        vision.Normalize([0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]),
        vision.HWC2CHW(),
    ]
    data = data.map(steps, "image").map(transforms.TypeCast(ms.int32), "label")
    return data.batch(config.batch_size, drop_remainder=training)
