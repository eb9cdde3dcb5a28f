"""The index of the product, and what all indexes share."""
