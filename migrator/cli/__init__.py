"""The command line: one file a command, and no more in it than what is asked and what is said.

What can be said to any of them is in one table, ``reports/options.json``. ``options.py`` reads it with
argparse, as a hook runs for each commit and a person who looks up a name waits: that is there at once.
"""
