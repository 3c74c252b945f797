"""The models run on the command line, with their options."""

from click.testing import CliRunner

from fuseflow.cli.main import main

for words in (
    "run models/one_layer.py --fuse full",
    "run models/autoencoder.py --small",
    "run models/autoencoder.py --small --part encoder -O hidden=5",
):
    result = CliRunner().invoke(main, words.split())
    assert result.exit_code == 0 and "check against PyTorch: passed" in result.output, result.output
result = CliRunner().invoke(main, "run models/autoencoder.py --small --part decoder".split())
assert result.exit_code == 2 and "cannot be `decoder`" in result.output, result.output
