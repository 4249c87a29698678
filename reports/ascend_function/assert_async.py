"""torch._assert_async: it waits for the value."""

# npumigrate: skip-file


def assert_async(input, assert_msg=""):
    """Raise where the one element is zero; torch's lets the device stop later."""
    if not bool(input.detach()):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")
