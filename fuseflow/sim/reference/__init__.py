"""The reference simulator. It runs a graph token by token, and defines what tokens mean and when nodes fire. Faster simulators must
equal it."""
