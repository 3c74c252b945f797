marked = mark_fiber_fifos(share(graph))
