import torch
import torch.nn.functional as F


def train_one_epoch(model, loader, optimizer, device, epoch):
    model.train()
    for step, (inputs, labels) in enumerate(loader):
        inputs, labels = inputs.to(device), labels.to(device)
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} step {step} loss {loss.item():.5f}")


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = seen = 0
    for inputs, labels in loader:
        predicted = model(inputs.to(device)).argmax(1).cpu()
        correct += (predicted == labels).sum().item()
        seen += len(labels)
    print(f"accuracy {correct / seen:.4f}")
