"""The command line: one file a command, and no more in it than what is asked and what is said.

All are read with argparse (``parser.py``): a hook runs for each commit, and a person who looks up a name
waits. What can be said to any of them is in one table, ``reports/options.json``; a command's function gets
the values, its docstring is the help, and what it gives is the exit code.
"""
