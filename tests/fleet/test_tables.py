"""What a fleet's tables rank."""

from __future__ import annotations

from migrator.fleet.tables import blocking, findings


def test_names_of_one_repository_share_a_row() -> None:
    """Forty kernels of one repository do not hide what stops two."""
    own = [["NPU652", f"Kernel{number}", "error", "", "", 50 - number] for number in range(40)]
    shared = ["NPU501", "torch.cuda.nvtx.mark", "error", "unsupported", "", 2]
    fixed = ["NPU101", "torch.cuda.empty_cache", "error", "", "safe", 9]
    found = findings(
        [{"name": "a", "findings": [*own, shared, fixed]}, {"name": "b", "findings": [shared, own[0]]}]
    )
    rows = [tuple(row) for row in blocking(found).itertuples(index=False)]
    assert rows == [
        ("Kernel0", "NPU652", 2, 100),
        ("torch.cuda.nvtx.mark", "NPU501", 2, 4),
        ("Kernel1, Kernel2, Kernel3 (+36)", "NPU652", 1, sum(50 - number for number in range(1, 40))),
    ]
