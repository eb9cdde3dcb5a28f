"""All that touches Numba: the decorator, the cache, and kernels that several packages share."""
