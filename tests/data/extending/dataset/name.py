SPECS = ("karate", *FROM_FILES, "random", "ring", "synthetic", "images", "bigbird")
