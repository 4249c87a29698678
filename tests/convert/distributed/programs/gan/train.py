import argparse
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--n_epochs", type=int, default=2)
parser.add_argument("--batch_size", type=int, default=16)
parser.add_argument("--latent_dim", type=int, default=4)
parser.add_argument("--lr", type=float, default=0.01)
opt = parser.parse_args()

cuda = True if torch.cuda.is_available() else False
os.makedirs("images", exist_ok=True)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(opt.latent_dim, 16), nn.LeakyReLU(0.2), nn.Linear(16, 8), nn.Tanh())

    def forward(self, z):
        return self.model(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid())

    def forward(self, img):
        return self.model(img)


torch.manual_seed(0)
adversarial_loss = torch.nn.BCELoss()
generator = Generator()
discriminator = Discriminator()

if cuda:
    generator.cuda()
    discriminator.cuda()
    adversarial_loss.cuda()

data = TensorDataset(torch.randn(16, 8), torch.randn(16, opt.latent_dim))
dataloader = DataLoader(data, batch_size=opt.batch_size, shuffle=True)

optimizer_G = torch.optim.Adam(generator.parameters(), lr=opt.lr, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=opt.lr, betas=(0.5, 0.999))

Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor

for epoch in range(opt.n_epochs):
    for i, (imgs, z) in enumerate(dataloader):
        valid = torch.ones(imgs.size(0), 1).type(Tensor)
        fake = torch.zeros(imgs.size(0), 1).type(Tensor)
        real_imgs = imgs.type(Tensor)
        z = z.type(Tensor)

        # -----------------
        #  Train Generator
        # -----------------
        optimizer_G.zero_grad()
        gen_imgs = generator(z)
        g_loss = adversarial_loss(discriminator(gen_imgs), valid)
        g_loss.backward()
        optimizer_G.step()

        # ---------------------
        #  Train Discriminator
        # ---------------------
        optimizer_D.zero_grad()
        real_loss = adversarial_loss(discriminator(real_imgs), valid)
        fake_loss = adversarial_loss(discriminator(gen_imgs.detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        d_loss.backward()
        optimizer_D.step()

        print(
            "[Epoch %d/%d] [Batch %d/%d] [D loss: %f] [G loss: %f]"
            % (epoch, opt.n_epochs, i, len(dataloader), d_loss.item(), g_loss.item())
        )

z = torch.linspace(-1, 1, 4 * opt.latent_dim).view(4, -1).type(Tensor)
print("FINAL", discriminator(generator(z)).mean().item())
torch.save({**{"g." + k: v for k, v in generator.state_dict().items()}, **discriminator.state_dict()}, "model.pt")
torch.save(generator.state_dict(), "images/generator.pth")
