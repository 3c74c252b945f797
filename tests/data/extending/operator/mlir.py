"math.atan": "atan",
