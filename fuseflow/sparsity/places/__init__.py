"""Where the entries of stored sparse tensors stand: what gradients, updates and pointwise functions need to know of a storage class."""
