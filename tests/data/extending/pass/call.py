graph = fifos(share(graph))
