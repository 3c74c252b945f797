LAYOUTS: dict[str, type[Layout]] = {cls.name: cls for cls in (Bitmap, Dense, Masked, COO, CSR, CSC, BCSR, ELL, NMLayout, NMGLayout)}
