import pandas as pd

table = pd.read_csv("gcn.csv")
print(table.pivot(index="par", columns="fuse", values="cycles"))

best = table[table["fuse"] == "best"].sort_values("cycles")
best["area_times_cycles"] = best["area"] * best["cycles"] / 1e9
print(best[["par", "cycles", "area", "area_times_cycles"]].to_string(index=False))
