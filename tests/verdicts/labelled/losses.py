import numpy as np
import scipy.linalg
import torch
import torch.nn as nn
import torch.nn.functional as F
from numpy import linalg as LA
from scipy import stats
from torch import Tensor, lgamma  # expect: none
from torch.nn import functional as fn


class DirichletLoss(nn.Module):
    def __init__(self, classes: int):
        super().__init__()
        self.classes = classes
        self.margin = nn.MultiLabelMarginLoss()  # expect: unsupported torch.nn.MultiLabelMarginLoss
        self.huber = nn.HuberLoss(delta=0.5)  # expect: fallback torch.nn.HuberLoss
        self.cosine = torch.nn.CosineEmbeddingLoss()  # expect: unsupported torch.nn.CosineEmbeddingLoss
        self.ce = nn.CrossEntropyLoss(label_smoothing=0.1)  # expect: none
        self.kl = nn.KLDivLoss(reduction="batchmean")  # expect: none
        self.kl_log = nn.KLDivLoss(log_target=True)  # expect: partial torch.nn.KLDivLoss
        self.bce = nn.BCEWithLogitsLoss()  # expect: none
        self.smooth = nn.SmoothL1Loss()  # expect: none
        self.triplet = nn.TripletMarginLoss()  # expect: none

    def forward(self, alpha, target):
        total = alpha.sum(dim=1)
        first = torch.lgamma(total)  # expect: fallback torch.lgamma
        second = lgamma(alpha)  # expect: fallback torch.lgamma
        third = alpha.lgamma()  # expect: fallback torch.Tensor.lgamma
        fourth = torch.digamma(alpha)  # expect: fallback torch.digamma
        fifth = alpha.digamma()  # expect: fallback torch.Tensor.digamma
        sixth = alpha.log().exp().sqrt()  # expect: none
        return first + second.sum() + third.sum() + fourth.sum() + fifth.sum() + sixth.sum()


def contrastive(a: Tensor, b: Tensor, y: Tensor) -> Tensor:
    distance = F.pairwise_distance(a, b)  # expect: none
    far = torch.cdist(a, b)  # expect: unsupported torch.cdist
    flat = F.pdist(a)  # expect: unsupported torch.nn.functional.pdist
    trip = F.triplet_margin_loss(a, b, y)  # expect: unsupported torch.nn.functional.triplet_margin_loss
    soft = fn.multilabel_soft_margin_loss(a, y)  # expect: unsupported torch.nn.functional.multilabel_soft_margin_loss
    own = fn.triplet_margin_with_distance_loss(a, b, y)  # expect: unsupported torch.nn.functional.triplet_margin_with_distance_loss
    sample = F.gumbel_softmax(a, tau=0.5)  # expect: unsupported torch.nn.functional.gumbel_softmax
    hub = F.huber_loss(a, b)  # expect: fallback torch.nn.functional.huber_loss
    multi = F.multi_margin_loss(a, y)  # expect: fallback torch.nn.functional.multi_margin_loss
    same = F.cosine_similarity(a, b)  # expect: none
    mse = F.mse_loss(a, b) + F.l1_loss(a, b)  # expect: none
    log_kl = F.kl_div(a, b, log_target=True)  # expect: partial torch.nn.functional.kl_div
    plain_kl = F.kl_div(a, b, reduction="sum")  # expect: none
    return (distance, far, flat, trip, soft, own, sample, hub, multi, same, mse, log_kl, plain_kl)[0]


def gaussian_nll(mean: Tensor, cov: Tensor) -> Tensor:
    sign, value = torch.slogdet(cov)  # expect: none
    half = torch.nanquantile(mean, 0.5)  # expect: unsupported torch.nanquantile
    spread, centre = torch.std_mean(mean)  # expect: unsupported torch.std_mean
    var, mu = torch.var_mean(mean, dim=0)  # expect: unsupported torch.var_mean
    step = torch.heaviside(mean, torch.zeros(1))  # expect: unsupported torch.heaviside
    counts = torch.poisson(mean)  # expect: unsupported torch.poisson
    order = torch.polygamma(1, mean)  # expect: fallback torch.polygamma
    ratio = torch.igamma(mean, mean)  # expect: fallback torch.igamma
    upper = torch.igammac(mean, mean)  # expect: fallback torch.igammac
    bessel = torch.i0(mean)  # expect: fallback torch.i0
    hyp = torch.hypot(mean, mean)  # expect: fallback torch.hypot
    top = torch.fmax(mean, mean)  # expect: fallback torch.fmax
    low = torch.fmin(mean, mean)  # expect: fallback torch.fmin
    sgn = torch.copysign(mean, mean)  # expect: fallback torch.copysign
    most = torch.mode(mean)  # expect: fallback torch.mode
    usual = torch.maximum(mean, mean) + torch.minimum(mean, mean)  # expect: none
    erf = torch.erf(mean)  # expect: none
    parts = [sign, value, half, spread, centre, var, mu, step, counts, order, ratio, upper, bessel]
    return parts[0] + hyp + top + low + sgn + most.values + usual + erf


def reference(matrix: np.ndarray):
    a = np.linalg.det(matrix)  # expect: none
    b = LA.solve(matrix, matrix)  # expect: none
    c = scipy.linalg.cholesky(matrix)  # expect: none
    d = stats.mode(matrix)  # expect: none
    e = matrix.trace()  # expect: none
    f = np.fft.fft(matrix)  # expect: none
    g = np.hypot(matrix, matrix)  # expect: none
    h = np.heaviside(matrix, 0.5)  # expect: none
    i = np.copysign(matrix, -1)  # expect: none
    return a, b, c, d, e, f, g, h, i
