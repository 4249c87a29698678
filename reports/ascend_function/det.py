"""torch.linalg.det by Gaussian elimination, whose steps are derived: of singular matrices, too."""

# npumigrate: skip-file

from ._elimination import eliminated


def det(A):
    """The determinants of square matrices."""
    pivots, sign, _ = eliminated(A)
    return sign * pivots.prod(-1)
