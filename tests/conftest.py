"""What the tests take for granted of the process that runs them."""

from __future__ import annotations

import signal

from tests.leftovers import mark, pytest_runtest_makereport, pytest_runtest_setup

__all__ = ["pytest_runtest_makereport", "pytest_runtest_setup"]
mark()

# A process in the background, or below nohup, may ignore these, and what the tests start inherits that.
for number in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
