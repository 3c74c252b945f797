reduce_interval: Count = 1
