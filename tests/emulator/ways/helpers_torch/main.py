from common import *
from layers import Block

USE_CUDA = torch.cuda.is_available()


def get_model(width=6):
    model = nn.Sequential(Block(width), Block(width), nn.Linear(width, 1))
    if USE_CUDA:
        model = model.cuda()
    return model


def train(model, steps=3):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    device = try_gpu()
    for step in range(steps):
        x = torch.randn(5, 6)
        y = x.sum(1, keepdim=True)
        if USE_CUDA:
            x, y = x.cuda(), y.to(device)
        loss = F.smooth_l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if USE_CUDA:
            torch.cuda.synchronize()
        print(f"step {step} loss {loss.item():.6f}")


if __name__ == "__main__":
    seed_everything()
    model = get_model()
    train(model)
    name = torch.cuda.get_device_name(0) if USE_CUDA else "CPU"
    print("named", bool(name), f"norm {sum(p.norm().item() for p in model.parameters()):.5f}")
