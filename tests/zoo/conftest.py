"""The models of the zoo and what runs them are no tests: only `test_zoo.py` is collected."""

collect_ignore_glob = ["pyg_*.py", "huggingface_*.py", "plain_*.py", "scientific.py", "dynamic_*.py", "zoo_*.py"]
