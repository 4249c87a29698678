"""npumigrate.log."""

from __future__ import annotations

import logging

from migrator.report.log_file import log_to


def test_a_new_file_begins_at_one_megabyte_and_ten_are_kept(tmp_path) -> None:
    logger = logging.getLogger("npumigrate")
    logger.setLevel(logging.INFO)
    with log_to(tmp_path):
        for _ in range(12_000):
            logger.info("x" * 1000)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["npumigrate.log", *(f"npumigrate.log.{number}" for number in range(1, 10))]
    assert all(path.stat().st_size <= 1024 * 1024 for path in tmp_path.iterdir())


def test_after_the_run_nothing_is_written(tmp_path) -> None:
    with log_to(tmp_path):
        pass
    logging.getLogger("npumigrate").error("late")
    assert (tmp_path / "npumigrate.log").read_text() == ""
