"""The reference interpreter: what tokens mean and when nodes fire, token by token. The definition that faster engines must equal."""
