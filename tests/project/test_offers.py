from __future__ import annotations

from migrator.project.offers import MEETS, MEETS_OTHERS, Offer, Offers
from tests.timing import grows_evenly


def test_a_class_with_thousands_of_names() -> None:
    """Each row is joined with its class, and not with all rows that this has already."""

    def rows(count: int) -> Offers:
        every = {Offer(MEETS, f"a.n{each}", detail=("a.py:1", "", f"a:{each}")) for each in range(count)}
        found = Offers(frozenset({*every, Offer(MEETS_OTHERS, "a.n1", detail=("b.py:2", "npu", "b:1"))}))
        assert found.elsewhere(MEETS, "a.n1")
        return found

    def joined(offers: Offers) -> None:
        assert Offers.met(offers, "a.n1", own=True)[:2] == ("npu", "a:0")
        vars(offers).pop("_classes")

    assert grows_evenly(joined, rows, 2000)
