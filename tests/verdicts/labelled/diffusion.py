import torch
from torch import einsum, nn
from torch.fft import fftn, fftshift, ifftn, ifftshift  # expect: none
import torch.fft as tfft
import torch.nn.functional as F


def lowpass(x, threshold: int, scale: float):
    freq = fftn(x, dim=(-2, -1))  # expect: none
    freq = fftshift(freq, dim=(-2, -1))  # expect: unsupported torch.fft.fftshift
    mask = torch.ones_like(x)  # expect: none
    freq = ifftshift(freq * mask * scale)  # expect: unsupported torch.fft.ifftshift
    bins = tfft.fftfreq(threshold)  # expect: unsupported torch.fft.fftfreq
    half = torch.fft.rfftfreq(threshold)  # expect: unsupported torch.fft.rfftfreq
    herm = tfft.ihfft2(freq)  # expect: unsupported torch.fft.ihfft2
    real = torch.fft.rfft(x)  # expect: none
    return ifftn(freq).real, bins, half, herm, real  # expect: none


class Timesteps(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.act = nn.GELU()  # expect: none
        self.fast = nn.GELU(approximate="tanh")  # expect: partial torch.nn.GELU
        self.norm = nn.GroupNorm(32, dim)  # expect: none
        self.mode = "linear"  # expect: none

    def forward(self, t, context=None):
        freqs = torch.exp(-torch.arange(0, self.dim, dtype=torch.float32))  # expect: none
        wide = torch.arange(0, self.dim, dtype=torch.float64)  # expect: none
        spectrum = torch.linspace(0, 1, 8, dtype=torch.float64)  # expect: none
        window = torch.hann_window(8, dtype=torch.float64)  # expect: partial torch.hann_window
        eye = torch.eye(3, dtype=torch.double)  # expect: partial torch.eye
        ones = torch.ones(3, dtype=torch.complex64)  # expect: partial torch.ones
        zeros = torch.zeros(3, dtype=torch.complex64)  # expect: none
        args = t[:, None].float() * freqs[None]  # expect: none
        if self.mode == "linear":  # expect: none
            args = args.cos()  # expect: none
        kaiser = torch.kaiser_window(8)  # expect: none
        return args, wide, spectrum, window, eye, ones, zeros, kaiser


class CrossAttention(nn.Module):
    def __init__(self, dim, heads=8):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim)
        self.to_kv = nn.Linear(dim, dim * 2)

    def forward(self, x, context):
        q, (k, v) = self.to_q(x), self.to_kv(context).chunk(2, dim=-1)  # expect: none
        sim = einsum("b i d, b j d -> b i j", q, k)  # expect: none
        weights = sim.softmax(dim=-1)  # expect: none
        fused = F.scaled_dot_product_attention(q, k, v)  # expect: none
        rotated = torch.polar(torch.ones_like(q), q)  # expect: none
        as_complex = torch.view_as_complex(q.float())  # expect: none
        volume = F.conv3d(x, x)  # expect: unsupported torch.nn.functional.conv3d
        up = F.conv_transpose3d(x, x)  # expect: unsupported torch.nn.functional.conv_transpose3d
        pooled = F.avg_pool3d(x, 2)  # expect: unsupported torch.nn.functional.avg_pool3d
        return einsum("b i j, b j d -> b i d", weights, v), fused, rotated, as_complex, volume, up, pooled


class Video(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.MaxPool3d(2)  # expect: unsupported torch.nn.MaxPool3d
        self.mean = nn.AvgPool3d(2)  # expect: unsupported torch.nn.AvgPool3d
        self.up = nn.ConvTranspose3d(8, 8, 2)  # expect: unsupported torch.nn.ConvTranspose3d
        self.conv = nn.Conv3d(8, 8, 3)  # expect: none
        self.pad = nn.ReplicationPad3d(1)  # expect: unsupported torch.nn.ReplicationPad3d
        self.reflect = nn.ReflectionPad3d(1)  # expect: unsupported torch.nn.ReflectionPad3d
        self.flat = nn.ReflectionPad2d(1)  # expect: none
        self.unpool = nn.MaxUnpool3d(2)  # expect: unsupported torch.nn.MaxUnpool3d

    def forward(self, clip):
        return self.up(self.conv(self.pad(self.down(clip))))  # expect: none


def solve(matrix: torch.Tensor, right: torch.Tensor):
    least = torch.linalg.lstsq(matrix, right)  # expect: unsupported torch.linalg.lstsq
    factor = torch.linalg.ldl_factor(matrix)  # expect: unsupported torch.linalg.ldl_factor
    svd = torch.linalg.svd(matrix)  # expect: none
    norm = torch.linalg.norm(matrix)  # expect: none
    expo = torch.matrix_exp(matrix)  # expect: fallback torch.matrix_exp
    chol = torch.cholesky(matrix)  # expect: fallback torch.cholesky
    short = torch.istft(matrix, 8)  # expect: none
    spectra = torch.stft(matrix, 8, return_complex=True)  # expect: none
    return least, factor, svd, norm, expo, chol, short, spectra
