"""Tables of ATen operators: operators without an Einsum form, with the reason, and operators that are known to lower to Linalg."""

from __future__ import annotations

from dataclasses import dataclass

from fuseflow.frontend.hints import HINT_DROPOUT, HINT_EVAL, HINT_OUTSIDE


@dataclass(frozen=True, slots=True)
class UnsupportedOperators:
    """A family of operators without an Einsum form, with a description of the family and a hint what to do instead."""

    description: str
    hint: str
    names: frozenset[str]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


INDEXING = UnsupportedOperators(
    "indexing by a tensor",
    HINT_OUTSIDE,
    _names("""
        index index_select gather take take_along_dim masked_select masked_scatter nonzero nonzero_numpy embedding
        index_put index_put_ index_add index_add_ index_copy index_copy_ index_fill index_fill_ scatter scatter_ scatter_add
        scatter_add_ scatter_reduce scatter_reduce_ put put_ one_hot _unsafe_index
    """),
)
BAGS = UnsupportedOperators(
    "bags of embeddings at computed positions",
    "give the items and the offsets of the bags to the model as integers",
    _names("embedding_bag"),
)
SIZED_BY_DATA = _names("masked_select nonzero nonzero_numpy argwhere unique _unique2 unique_dim unique_consecutive")
"""Operators that return as many elements as their operand has of some kind."""
STORED_PATTERN = UnsupportedOperators(
    "an operator on the stored pattern of a sparse tensor",
    "use the dense form of the operator: the layout of the arguments brings the pattern back",
    _names("""
        values _values indices _indices crow_indices col_indices ccol_indices row_indices _nnz _sparse_softmax
        _sparse_log_softmax
    """),
)
SPARSE_CONSTRUCTION = UnsupportedOperators(
    "a sparse tensor made inside the model",
    "make its places from integers that are given to the model: only its numbers may be data",
    _names("""
        sparse_coo_tensor _sparse_coo_tensor_unsafe _sparse_coo_tensor_with_dims_and_tensors sparse_compressed_tensor
        _sparse_compressed_tensor_unsafe sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor
    """),
)
SLICING = UnsupportedOperators(
    "concatenating or slicing",  # of constants, which PyTorch evaluates; of data it is an index with an offset
    HINT_OUTSIDE,
    _names("""
        cat concat stack hstack vstack slice select narrow split split_with_sizes chunk tensor_split unbind roll flip pad
        constant_pad_nd slice_scatter select_scatter repeat tile repeat_interleave
    """),
)
SORTING = UnsupportedOperators(
    "sorting or scanning",
    HINT_OUTSIDE,
    _names("""
        topk sort argsort msort cumsum cumprod cummax cummin logcumsumexp median nanmedian mode kthvalue unique _unique2
        unique_dim unique_consecutive diff
    """),
)
DIAGONAL = UnsupportedOperators(
    "a diagonal",
    "scale instead: `diag(d) @ a` is `d[:, None] * a`, `a @ diag(d)` is `a * d`",
    _names("diagonal diag diag_embed diagflat trace linalg_diagonal"),
)
LOOP_INDEX = UnsupportedOperators(
    "a loop index used as a value",
    "pass the result as a tensor (a buffer)",
    _names("argmax argmin arange eye tril triu tril_indices triu_indices linspace"),
)
UNSUPPORTED_FAMILIES = (
    INDEXING,
    BAGS,
    STORED_PATTERN,
    SPARSE_CONSTRUCTION,
    SORTING,
    DIAGONAL,
    LOOP_INDEX,
    UnsupportedOperators(
        "as many counts as the greatest number says",
        "give `minlength`, and count positions of a top-k or argmax over no more columns, or `index.clamp(0, minlength - 1)`",
        _names("bincount"),
    ),
    UnsupportedOperators(
        "the positions of the largest elements of windows",
        "pool without `return_indices`",
        _names("max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices"),
    ),
    UnsupportedOperators(
        "PyTorch's fast path of a transformer",
        "call `torch.backends.mha.set_fastpath_enabled(False)` before the model is captured",
        _names("_transformer_encoder_layer_fwd _native_multi_head_attention"),
    ),
    UnsupportedOperators(
        "random numbers",
        HINT_EVAL,
        _names("""
            rand randn rand_like randn_like randint randint_like bernoulli bernoulli_ normal normal_ uniform uniform_ multinomial
            randperm exponential_ native_dropout
        """),
    ),
    UnsupportedOperators(
        "reading a number out of a tensor",
        "control flow and Python numbers cannot depend on data; use `torch.where`",
        _names("item _local_scalar_dense"),
    ),
)

VIEWS = _names("""
    alias clone contiguous copy detach expand expand_as flatten lift_fresh lift_fresh_copy movedim permute reshape squeeze swapaxes
    t to _to_copy type_as transpose unflatten unsqueeze view view_as _unsafe_view
""")
"""Operators that return the numbers of their operand in another shape."""

TRAINING_FLAGS = {
    **dict.fromkeys(
        ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"), ("random numbers", 2, HINT_DROPOUT)
    ),
    "rrelu": ("random numbers", 3, HINT_EVAL),
    "batch_norm": ("statistics of the batch", 5, HINT_EVAL),
    "instance_norm": ("statistics of the input", 5, "use LayerNorm, or call .eval() with track_running_stats=True"),
}
"""Operators with a `train` flag. Each row has the effect of the flag, its position, and a hint."""

PATTERN_DEPENDENT = {
    "aten._sparse_mm.reduce": 0,
    "aten._sparse_mm_reduce_impl.default": 0,
    "aten.sparse_sampled_addmm.default": 0,
    "aten.sparse_mask.default": 1,
}
"""Operators whose result depends on which zeros are stored, with the position of the tensor that stores them."""

PATTERN_KEEPING = _names("""
    neg positive relu abs sin sinh asin asinh tan tanh atan atanh sgn sign sqrt ceil floor round trunc frac deg2rad rad2deg erf erfinv
    expm1 log1p nan_to_num mul div clone detach alias _to_copy to to_dtype coalesce _coalesce to_sparse _to_sparse to_sparse_csr
    _to_sparse_csr to_sparse_csc _to_sparse_csc
""")
"""The operators that, given one sparse matrix and numbers, compute with its entries and leave them where they are, zeros included."""

MOVEMENTS = _names("""
    permute transpose t view _unsafe_view reshape expand squeeze unsqueeze clone contiguous detach alias lift_fresh_copy slice select flip
    cat split_with_sizes constant_pad_nd
""")
"""The operators that leave every number as it is."""

LOWERABLE = MOVEMENTS | _names("""
    mm bmm mv dot addmm baddbmm matmul copy _to_copy to
    add sub rsub mul div remainder neg abs maximum minimum clamp clamp_min clamp_max pow square sign sgn floor ceil round trunc
    exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal sin cos tanh sigmoid erf
    relu relu6 leaky_relu elu gelu silu hardtanh hardsigmoid hardswish softplus threshold
    where masked_fill eq ne lt le gt ge logical_not logical_and logical_or logical_xor bitwise_not bitwise_and bitwise_or bitwise_xor
    sum mean amax amin prod max min linalg_vector_norm
    convolution avg_pool1d avg_pool2d avg_pool3d
    max_pool2d_with_indices max_pool3d_with_indices
    full full_like fill scalar_tensor zeros ones zeros_like ones_like empty empty_strided convert_element_type
""")
"""The operators that may be left after decomposition. They lower to Linalg without a failure, and most of them have an Einsum form."""
