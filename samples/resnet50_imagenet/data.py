"""ImageNet data loading (and a synthetic stand-in for quick runs)."""
import os

import torch
import torchvision.datasets as datasets
import torchvision.transforms as transforms
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class SyntheticImageNet(Dataset):
    """Random images with a faint pattern per class, so that there is something to learn."""

    def __init__(self, size, image_size, num_classes, seed):
        self.size = size
        self.image_size = image_size
        self.seed = seed
        g = torch.Generator().manual_seed(1234)
        self.patterns = torch.randn(min(num_classes, 10), 3, 8, 8, generator=g)
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, len(self.patterns), (size,), generator=g)

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(self.seed * 1000003 + index)
        image = torch.randn(3, self.image_size, self.image_size, generator=g)
        label = int(self.labels[index])
        pattern = torch.nn.functional.interpolate(self.patterns[label][None], size=self.image_size)[0]
        return image * 0.5 + pattern, label


def build_datasets(args):
    if args.synthetic:
        steps = args.steps if args.steps > 0 else 100
        size = steps * args.batch_size * args.world_size
        train_set = SyntheticImageNet(size, args.image_size, args.num_classes, seed=1)
        val_set = SyntheticImageNet(size, args.image_size, args.num_classes, seed=2)
        return train_set, val_set

    normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    train_set = datasets.ImageFolder(
        os.path.join(args.data, "train"),
        transforms.Compose([
            transforms.RandomResizedCrop(args.image_size),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            normalize,
        ]))
    val_set = datasets.ImageFolder(
        os.path.join(args.data, "val"),
        transforms.Compose([
            transforms.Resize(int(args.image_size * 256 / 224)),
            transforms.CenterCrop(args.image_size),
            transforms.ToTensor(),
            normalize,
        ]))
    return train_set, val_set


def build_loaders(args):
    train_set, val_set = build_datasets(args)
    if args.distributed:
        train_sampler = DistributedSampler(train_set, shuffle=True)
        val_sampler = DistributedSampler(val_set, shuffle=False, drop_last=True)
    else:
        train_sampler = None
        val_sampler = None

    # pinned memory makes the host to GPU copies asynchronous
    pin_memory = torch.cuda.is_available()
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=(train_sampler is None),
                              sampler=train_sampler, num_workers=args.workers, pin_memory=pin_memory,
                              drop_last=True)
    val_loader = DataLoader(val_set, batch_size=args.batch_size, shuffle=False, sampler=val_sampler,
                            num_workers=args.workers, pin_memory=pin_memory)
    return train_loader, val_loader, train_sampler
