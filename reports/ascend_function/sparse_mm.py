"""torch.sparse.mm and torch.spmm of a sparse matrix and a dense one."""

# npumigrate: skip-file

import torch


def sparse_mm(mat1, mat2):
    """The product, as a dense matrix, by rows of the dense one that are added up.

    The sparse matrix may lie on another device than the dense one, which is the result's. Two
    sparse matrices, or the sparse one behind, are given to torch.
    """
    if mat2.layout != torch.strided or mat1.layout not in (torch.sparse_coo, torch.sparse_csr):
        return torch.mm(mat1, mat2)
    if mat1.layout == torch.sparse_csr:
        counts = mat1.crow_indices().diff()
        rows = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
        columns, values = mat1.col_indices(), mat1.values()
    else:
        mat1 = mat1.coalesce()  # its values can be derived
        rows, columns = mat1.indices().unbind()
        values = mat1.values()
    rows, columns, values = (each.to(mat2.device) for each in (rows, columns, values))
    chosen = mat2.index_select(0, columns.long()) * values.unsqueeze(-1)
    return chosen.new_zeros(mat1.shape[0], mat2.shape[1]).index_add(0, rows.long(), chosen)
