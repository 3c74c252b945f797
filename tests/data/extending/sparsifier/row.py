c.name: c for c in (Band, KeepAll, Stored, RandomFraction, Threshold, NM, TopK, Magnitude, BlockMagnitude, Filter, NMG, Movement)
