"""Trees of rows beyond the memory of one machine, on its disk or on a Dask cluster.

`linkage` builds a tree from files, Dask collections or blocks of rows. A tree that is larger than
memory is a `PartitionedDendrogram`, which `load` finds again.
"""

from fastrbhc.distributed._labels import PartitionedLabels
from fastrbhc.distributed._linkage import linkage
from fastrbhc.distributed._scratch import ScratchFullError
from fastrbhc.distributed._tree import PartitionedDendrogram, load

__all__ = ["PartitionedDendrogram", "PartitionedLabels", "ScratchFullError", "linkage", "load"]
