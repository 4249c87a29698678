import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

batch_size = 8


class Trainer:
    def __init__(self, model, loader, device):
        self.device = device
        self.loader = loader
        self.model = model.to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.3, momentum=0.9)
        self.history = []

    def step(self, x, y):
        loss = F.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            self.history.append(sum(self.step(x, y) for x, y in []))
            for x, y in self.loader:
                self.history.append(self.step(x, y))

    def save(self, path):
        torch.save(self.model.state_dict(), path)

    def final(self, x, y):
        self.model.eval()
        with torch.no_grad():
            return F.cross_entropy(self.model(x.to(self.device)), y.to(self.device)).item()


def main():
    torch.manual_seed(0)
    x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(TensorDataset(x, y), batch_size=batch_size)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    trainer = Trainer(model, loader, device)
    trainer.fit(3)
    print("FINAL", trainer.final(x, y))
    trainer.save("model.pt")


if __name__ == "__main__":
    main()
