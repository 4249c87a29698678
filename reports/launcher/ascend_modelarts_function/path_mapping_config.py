"""What modelarts_boot.py copies between object storage and the local disk.

input:  local path: object storage. Downloaded before the training, once on each node.
output: local path: object storage. Uploaded after it, also after a failed one.

A local path is the one that the script uses; a relative one starts where modelarts_boot.py lies. The other
side is obs://bucket/path (or s3://), file:///path or an absolute path; {node} in an output is the node's
number. With "output_nodes": "first" only node 0 uploads.
"""

from __future__ import annotations

PATH_MAPPING_CONFIG: dict[str, object] = {}  # @CONFIG@
