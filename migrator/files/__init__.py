"""Files in, files out: reading and writing everything that a project folder can hold.

The input is only ever read. The result is built in a folder beside its final place and renamed at the end, so
a run that fails or is interrupted leaves nothing there, or the previous result.

=====================================  ==========================================================
Python text in any declared encoding   migrated; outside a change the same bytes, newlines, mode
undeclared encodings, UTF-16, NUL,     copied as they are; ``Unreadable`` says why and what to do
wrong cookies, more than 64 MiB
other files, empty ones, ``.git``      copied as they are
excluded files                         copied as they are, ``Entry.excluded`` is set
__pycache__, tool caches, virtual      not copied; one ``skipped`` entry each
environments, the output folder
symbolic links, loops, dangling ones   never followed, made again (see ``output.add_link``)
named pipes, sockets, devices          not copied; one ``special`` entry each
files or folders without permission    not copied; ``Unreadable`` or an ``unreadable`` entry
odd names                              kept byte for byte; ``errors.shown`` prints them on one line
output full, read-only, name too long  ``CannotWrite``: the run ends and leaves nothing behind
output or input inside one another     the output folder is skipped, or ``CannotWrite``
=====================================  ==========================================================
"""
