"""A run as one HTML page that needs nothing else: no network, no script to be readable."""
