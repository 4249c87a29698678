"""Many repositories at once, over Dask: each is one run of a command of npumigrate, with limits."""
