DATASET_NAMES = ("karate", *FILE_READERS, "random", "ring", "synthetic", "images", "bigbird")
