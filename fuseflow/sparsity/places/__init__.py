"""Where the entries of stored sparse tensors stand: gradients, updates and pointwise functions need this for a storage class."""
