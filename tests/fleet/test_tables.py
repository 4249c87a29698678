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


def test_names_of_the_same_repositories_share_a_row() -> None:
    """What one library brings into two repositories is one row; what stops others, too, has its own."""
    copied = [["NPU652", f"copied{number}", "error", "", "", 1] for number in range(4)]
    other = ["NPU652", "other", "error", "", "", 1]
    outcomes = [{"name": name, "findings": [*copied, other]} for name in "ab"]
    found = findings([*outcomes, {"name": "c", "findings": [other]}])
    rows = [tuple(row) for row in blocking(found).itertuples(index=False)]
    assert rows == [("other", "NPU652", 3, 3), ("copied0, copied1, copied2 (+1)", "NPU652", 2, 8)]


def test_nothing_stops_what_has_no_findings() -> None:
    assert blocking(findings([{"name": "a", "findings": []}])).empty
