
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Subset, TensorDataset

batch_size = 8
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))

    def forward(self, x):
        return self.layers(x)


def folds(n, k):
    size = n // k
    for i in range(k):
        val = list(range(i * size, (i + 1) * size))
        yield [j for j in range(n) if j not in val], val


def main():
    torch.manual_seed(0)
    dataset = TensorDataset(torch.randn(24, 8), torch.randint(0, 4, (24,)))
    results = {}
    loss_function = nn.CrossEntropyLoss()
    for fold, (train_ids, test_ids) in enumerate(folds(24, 3)):
        print(f"FOLD {fold}")
        trainset = Subset(dataset, train_ids)
        trainloader = DataLoader(trainset, batch_size=batch_size, shuffle=False)
        testloader = DataLoader(Subset(dataset, test_ids), batch_size=8)
        network = Net().to(device)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.2)
        for epoch in range(2):
            current_loss = 0.0
            for i, data in enumerate(trainloader, 0):
                inputs, targets = data
                inputs, targets = inputs.to(device), targets.to(device)
                optimizer.zero_grad()
                loss = loss_function(network(inputs), targets)
                loss.backward()
                optimizer.step()
                current_loss += loss.item()
            print("TRAIN %.6f" % (current_loss / len(trainloader)))
        torch.save(network.state_dict(), f"model-fold-{fold}.pth")
        network.eval()
        total = 0.0
        with torch.no_grad():
            for inputs, targets in testloader:
                total += loss_function(network(inputs.to(device)), targets.to(device)).item()
        results[fold] = total
    print("FINAL", sum(results.values()) / len(results))
    torch.save(network.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
