import torch
import torch.nn as nn
import torch.nn.functional as F

img2mse = lambda x, y: torch.mean((x - y) ** 2)
mse2psnr = lambda x: -10. * torch.log(x) / torch.log(torch.Tensor([10.]))


def get_embedder(multires):
    bands = 2. ** torch.linspace(0., multires - 1, steps=multires)
    functions = [lambda x: x]
    for freq in bands:
        for p_fn in (torch.sin, torch.cos):
            functions.append(lambda x, p_fn=p_fn, freq=freq: p_fn(x * freq))
    return lambda x: torch.cat([fn(x) for fn in functions], -1), 3 * len(functions)


class NeRF(nn.Module):
    def __init__(self, input_ch, W):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(input_ch, W), nn.Linear(W, W)])
        self.output = nn.Linear(W, 4)

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.output(x)


def get_rays(H, W, focal, c2w):
    i, j = torch.meshgrid(torch.linspace(0, W - 1, W), torch.linspace(0, H - 1, H))
    i, j = i.t(), j.t()
    dirs = torch.stack([(i - W * .5) / focal, -(j - H * .5) / focal, -torch.ones_like(i)], -1)
    rays_d = torch.sum(dirs[..., None, :] * c2w[:3, :3], -1)
    return c2w[:3, -1].expand(rays_d.shape), rays_d


def raw2outputs(raw, z_vals, rays_d):
    dists = z_vals[..., 1:] - z_vals[..., :-1]
    dists = torch.cat([dists, torch.Tensor([1e10]).expand(dists[..., :1].shape)], -1)
    dists = dists * torch.norm(rays_d[..., None, :], dim=-1)
    alpha = 1. - torch.exp(-F.relu(raw[..., 3]) * dists)
    kept = torch.cat([torch.ones((alpha.shape[0], 1)), 1. - alpha + 1e-10], -1)
    weights = alpha * torch.cumprod(kept, -1)[:, :-1]
    return torch.sum(weights[..., None] * torch.sigmoid(raw[..., :3]), -2)
