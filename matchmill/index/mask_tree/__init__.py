"""The index `mask_tree`: boxes in a tree of 64 children per node, compared 64 at a time."""

from matchmill.index.mask_tree.index import MaskTree

__all__ = ["MaskTree"]
