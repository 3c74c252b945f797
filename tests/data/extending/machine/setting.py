slowdown: Count = 1
