cls.name: cls for cls in (Band, KeepAll, RandomFraction, Threshold, NM, TopK, Magnitude, BlockMagnitude, Filter, NMG, Movement)
