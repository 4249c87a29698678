import argparse

import numpy as np
import torch
from run_nerf_helpers import NeRF, get_embedder, get_rays, img2mse, mse2psnr, raw2outputs

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
np.random.seed(0)


def render_rays(rays_o, rays_d, network, embed, near, far, N_samples):
    t_vals = torch.linspace(0., 1., steps=N_samples)
    z_vals = near * (1. - t_vals) + far * t_vals
    z_vals = z_vals.expand([rays_o.shape[0], N_samples])
    pts = rays_o[..., None, :] + rays_d[..., None, :] * z_vals[..., :, None]
    raw = network(embed(pts.reshape(-1, 3))).reshape(*pts.shape[:-1], 4)
    return raw2outputs(raw, z_vals, rays_d)


def create_nerf(args):
    embed, width = get_embedder(args.multires)
    model = NeRF(width, args.netwidth).to(device)
    optimizer = torch.optim.Adam(params=list(model.parameters()), lr=args.lrate, betas=(0.9, 0.999))
    return model, embed, optimizer


def train():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=3)
    parser.add_argument("--multires", type=int, default=2)
    parser.add_argument("--netwidth", type=int, default=16)
    parser.add_argument("--lrate", type=float, default=5e-3)
    args = parser.parse_args()

    H, W, focal = 6, 6, 5.
    pose = np.eye(4, dtype=np.float32)
    target = torch.Tensor(np.random.rand(H, W, 3)).to(device)
    model, embed, optimizer = create_nerf(args)
    rays_o, rays_d = get_rays(H, W, focal, torch.Tensor(pose))
    bounds = torch.Tensor([2., 6.])
    near, far = bounds[0], bounds[1]
    for i in range(args.iters):
        coords = torch.stack(torch.meshgrid(torch.linspace(0, H - 1, H), torch.linspace(0, W - 1, W)), -1)
        coords = torch.reshape(coords, [-1, 2])
        select = np.random.choice(coords.shape[0], size=[16], replace=False)
        chosen = coords[select].long()
        batch_o = rays_o[chosen[:, 0], chosen[:, 1]]
        batch_d = rays_d[chosen[:, 0], chosen[:, 1]]
        target_s = target[chosen[:, 0], chosen[:, 1]]
        rgb = render_rays(batch_o, batch_d, model, embed, near, far, 8)
        optimizer.zero_grad()
        loss = img2mse(rgb, target_s)
        psnr = mse2psnr(loss)
        loss.backward()
        optimizer.step()
        print(f"[TRAIN] Iter: {i} Loss: {loss.item():.6f}  PSNR: {psnr.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_default_tensor_type('torch.cuda.FloatTensor')
    train()
