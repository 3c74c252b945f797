from fuseflow.sparsity.sparsifiers.band import Band
