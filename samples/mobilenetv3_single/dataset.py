import os

import torch
from torch.utils.data import DataLoader, TensorDataset
from torchvision import datasets, transforms

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def synthetic_dataset(size, image_size, num_classes, seed):
    """Noise plus a fixed pattern per class."""
    used_classes = min(num_classes, 10)
    g = torch.Generator().manual_seed(2024)
    patterns = torch.randn(used_classes, 3, 8, 8, generator=g)
    patterns = torch.nn.functional.interpolate(patterns, size=(image_size, image_size))

    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, used_classes, (size,), generator=g)
    images = 0.5 * torch.randn(size, 3, image_size, image_size, generator=g) + patterns[labels]
    return TensorDataset(images, labels)


def build_dataloaders(cfg, device):
    if cfg.synthetic:
        size = (cfg.steps or 50) * cfg.batch_size
        train_set = synthetic_dataset(size, cfg.image_size, cfg.num_classes, seed=1)
        val_set = synthetic_dataset(size, cfg.image_size, cfg.num_classes, seed=2)
    else:
        train_set = datasets.ImageFolder(os.path.join(cfg.data, "train"), transforms.Compose([
            transforms.RandomResizedCrop(cfg.image_size),
            transforms.RandomHorizontalFlip(),
            transforms.ColorJitter(0.2, 0.2, 0.2),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]))
        val_set = datasets.ImageFolder(os.path.join(cfg.data, "val"), transforms.Compose([
            transforms.Resize(int(cfg.image_size / 0.875)),
            transforms.CenterCrop(cfg.image_size),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]))

    kwargs = {"batch_size": cfg.batch_size, "num_workers": cfg.workers, "pin_memory": device.type == "cuda"}
    train_loader = DataLoader(train_set, shuffle=True, drop_last=True, **kwargs)
    val_loader = DataLoader(val_set, shuffle=False, **kwargs)
    return train_loader, val_loader
