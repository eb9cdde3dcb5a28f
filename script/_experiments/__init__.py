"""Experiments of a paper at full scale, and the page on them."""
