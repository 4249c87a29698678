'''Train CIFAR-10 with PyTorch on one GPU.'''
import argparse
import os
import random
import time

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.optim as optim
import torchvision
import torchvision.transforms as transforms

parser = argparse.ArgumentParser(description='PyTorch CIFAR-10 Training')
parser.add_argument('--lr', default=0.1, type=float, help='learning rate')
parser.add_argument('--epochs', default=200, type=int, help='number of epochs')
parser.add_argument('--batch-size', default=128, type=int, help='batch size')
parser.add_argument('--workers', default=2, type=int, help='data loading workers')
parser.add_argument('--data', default='./data', help='where CIFAR-10 is, or is downloaded to')
parser.add_argument('--checkpoint-dir', default='./checkpoint', help='where to save the best model')
parser.add_argument('--resume', '-r', action='store_true', help='resume from checkpoint')
parser.add_argument('--no-cuda', action='store_true', help='do not use CUDA even if it is available')
parser.add_argument('--seed', default=0, type=int, help='random seed')
parser.add_argument('--print-freq', default=50, type=int, help='print every N batches')
parser.add_argument('--synthetic', action='store_true', help='random data instead of CIFAR-10')
parser.add_argument('--image-size', default=32, type=int, help='image size of the synthetic data')
parser.add_argument('--steps', default=0, type=int, help='batches per epoch (0: all of them)')

CLASSES = ('plane', 'car', 'bird', 'cat', 'deer', 'dog', 'frog', 'horse', 'ship', 'truck')


class SyntheticCIFAR(torch.utils.data.Dataset):
    """10 classes of noisy images, made once and kept in memory."""

    def __init__(self, size, image_size, seed):
        g = torch.Generator().manual_seed(7)
        patterns = torch.randn(len(CLASSES), 3, 8, 8, generator=g)
        patterns = nn.functional.interpolate(patterns, size=(image_size, image_size))
        g = torch.Generator().manual_seed(seed)
        self.targets = torch.randint(0, len(CLASSES), (size,), generator=g)
        noise = torch.randn(size, 3, image_size, image_size, generator=g)
        self.images = 0.5 * noise + patterns[self.targets]

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        return self.images[index], self.targets[index]


def get_datasets(args):
    if args.synthetic:
        size = (args.steps if args.steps > 0 else 50) * args.batch_size
        return SyntheticCIFAR(size, args.image_size, seed=1), SyntheticCIFAR(size, args.image_size, seed=2)

    transform_train = transforms.Compose([
        transforms.RandomCrop(32, padding=4),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    ])
    transform_test = transforms.Compose([
        transforms.ToTensor(),
        transforms.Normalize((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    ])
    trainset = torchvision.datasets.CIFAR10(root=args.data, train=True, download=True,
                                            transform=transform_train)
    testset = torchvision.datasets.CIFAR10(root=args.data, train=False, download=True,
                                           transform=transform_test)
    return trainset, testset


def build_net():
    net = torchvision.models.resnet18(num_classes=len(CLASSES))
    # CIFAR images are small: 3x3 stem without max pooling
    net.conv1 = nn.Conv2d(3, 64, kernel_size=3, stride=1, padding=1, bias=False)
    net.maxpool = nn.Identity()
    return net


def train(epoch, net, trainloader, criterion, optimizer, args, use_cuda):
    print('\nEpoch: %d' % epoch)
    net.train()
    train_loss = 0
    correct = 0
    total = 0
    batches = 0
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        if args.steps > 0 and batch_idx >= args.steps:
            break
        if use_cuda:
            inputs, targets = inputs.cuda(), targets.cuda()
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()

        train_loss += loss.item()
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
        batches += 1

        if batch_idx % args.print_freq == 0:
            print('batch %d/%d | Loss: %.6f | Acc: %.3f%% (%d/%d)' % (
                batch_idx, len(trainloader), train_loss / batches, 100. * correct / total, correct, total))
    return train_loss / batches


def test(net, testloader, criterion, args, use_cuda):
    net.eval()
    test_loss = 0
    correct = 0
    total = 0
    batches = 0
    with torch.no_grad():
        for batch_idx, (inputs, targets) in enumerate(testloader):
            if args.steps > 0 and batch_idx >= args.steps:
                break
            if use_cuda:
                inputs, targets = inputs.cuda(), targets.cuda()
            outputs = net(inputs)
            loss = criterion(outputs, targets)

            test_loss += loss.item()
            _, predicted = outputs.max(1)
            total += targets.size(0)
            correct += predicted.eq(targets).sum().item()
            batches += 1

    acc = 100. * correct / total
    print('Test | Loss: %.6f | Acc: %.3f%% (%d/%d)' % (test_loss / batches, acc, correct, total))
    return test_loss / batches, acc


def main():
    args = parser.parse_args()
    use_cuda = torch.cuda.is_available() and not args.no_cuda

    random.seed(args.seed)
    torch.manual_seed(args.seed)
    if use_cuda:
        torch.cuda.manual_seed(args.seed)
        print('==> Using %s' % torch.cuda.get_device_name(0))
    else:
        print('==> CUDA is not used, running on the CPU')

    # Data
    print('==> Preparing data..')
    trainset, testset = get_datasets(args)
    trainloader = torch.utils.data.DataLoader(trainset, batch_size=args.batch_size, shuffle=True,
                                              num_workers=args.workers, pin_memory=use_cuda)
    testloader = torch.utils.data.DataLoader(testset, batch_size=args.batch_size, shuffle=False,
                                             num_workers=args.workers, pin_memory=use_cuda)

    # Model
    print('==> Building model..')
    net = build_net()
    if use_cuda:
        net.cuda()
        cudnn.benchmark = True

    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)

    best_acc = -1  # best test accuracy
    start_epoch = 0  # start from epoch 0 or last checkpoint epoch
    checkpoint_path = os.path.join(args.checkpoint_dir, 'ckpt.pth')
    if args.resume:
        print('==> Resuming from checkpoint..')
        assert os.path.isfile(checkpoint_path), 'Error: no checkpoint found!'
        checkpoint = torch.load(checkpoint_path, map_location='cuda' if use_cuda else 'cpu')
        net.load_state_dict(checkpoint['net'])
        optimizer.load_state_dict(checkpoint['optimizer'])
        scheduler.load_state_dict(checkpoint['scheduler'])
        best_acc = checkpoint['acc']
        start_epoch = checkpoint['epoch'] + 1

    train_loss = test_loss = float('nan')
    for epoch in range(start_epoch, args.epochs):
        start = time.time()
        train_loss = train(epoch, net, trainloader, criterion, optimizer, args, use_cuda)
        test_loss, acc = test(net, testloader, criterion, args, use_cuda)
        scheduler.step()
        print('epoch took %.1fs, lr is now %.5f' % (time.time() - start, scheduler.get_last_lr()[0]))

        # Save checkpoint.
        if acc > best_acc:
            print('Saving..')
            os.makedirs(args.checkpoint_dir, exist_ok=True)
            torch.save({
                'net': net.state_dict(),
                'optimizer': optimizer.state_dict(),
                'scheduler': scheduler.state_dict(),
                'acc': acc,
                'epoch': epoch,
            }, checkpoint_path)
            best_acc = acc

    print('FINAL train_loss=%.6f test_loss=%.6f best_acc=%.2f' % (train_loss, test_loss, best_acc))


if __name__ == '__main__':
    main()
