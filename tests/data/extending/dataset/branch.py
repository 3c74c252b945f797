if name == "ring":
    size = options.integer("nodes", 12, 3)
    options.finish()
    return _of_graph(spec, ring(size), adj)
