import torch

from preparing import prepare


def main():
    prepare(0)
    from nets import Net

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        loss = net(torch.randn(5, 4)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(step, round(loss.item(), 3))


if __name__ == "__main__":
    main()
