_integer("i12", 12, np.int16, "i12"),
