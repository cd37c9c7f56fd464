"""The forest weights themselves, as a sparse array."""

from __future__ import annotations

from scipy import sparse

from cqrf._readers.reader import Chunk, Reader


class WeightRows(Reader[sparse.csr_array, sparse.csr_array]):
    """The weights themselves, with the training rows as columns in the order of their table."""

    def read(self, chunk: Chunk) -> sparse.csr_array:
        """A sparse array of shape (n_queries, n_train)."""
        weights, order = chunk.weights, chunk.model.order
        rows = sparse.csr_array(  # a copy: sorting is in place, and other readers read the weights
            (weights.values.copy(), order[weights.ranks], weights.offsets),
            shape=(chunk.n_queries, len(order)),
        )
        rows.sort_indices()
        return rows

    def join(self, parts: list[sparse.csr_array]) -> sparse.csr_array:
        """The rows of all chunks."""
        return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")
