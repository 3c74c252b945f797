Operator("atan", 1, np.arctan, math.atan, unit="transcendental", ieee=lambda a: math.atan(a)),
