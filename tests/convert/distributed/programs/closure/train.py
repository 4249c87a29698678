"""LBFGS on a small regression, batches drawn without end."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def cycle(loader):
    while True:
        for batch in loader:
            yield batch


def main(steps=6, batch_size=8):
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.linspace(-1, 1, 32).unsqueeze(1)
    loader = DataLoader(TensorDataset(x, x.sin()), batch_size=batch_size)
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    data_iter = iter(loader)
    for step in range(steps):
        try:
            inputs, targets = next(data_iter)
        except StopIteration:
            data_iter = iter(loader)
            inputs, targets = next(data_iter)
        inputs, targets = inputs.to(device), targets.to(device)

        def closure():
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        print(step, loss.item())
    print("FINAL", nn.functional.mse_loss(model(x.to(device)), x.sin().to(device)).item())
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
