cls.name: cls for cls in (Band, KeepAll, Stored, RandomFraction, Threshold, NM, TopK, Magnitude, BlockMagnitude, Filter, NMG, Movement)
