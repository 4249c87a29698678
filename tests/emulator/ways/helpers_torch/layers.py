import common as c


class Block(c.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = c.nn.Linear(width, width)
        self.mask = c.torch.ones(width)
        if c.torch.cuda.is_available():
            self.mask = self.mask.cuda()

    def forward(self, x):
        return x + c.F.relu(self.linear(x)) * self.mask
