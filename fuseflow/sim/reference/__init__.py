"""The reference simulator. It runs a graph token by token, and defines the meaning of tokens and the cycles in which nodes fire.
Faster simulators must equal it."""
