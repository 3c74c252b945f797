"""The section is said in Python, on the command line and in a file, which all mean the same, and is refused in its place."""

from click.testing import CliRunner

import fuseflow as ff
from fuseflow.cli.main import main
from fuseflow.errors import ScheduleError, UsageError

schedule = ff.Schedule.fuse("full").prefetch("W", 4)
assert str(schedule) == "fuse: [full]\nprefetch: {W: 4}\n"
assert ff.Schedule.from_yaml(str(schedule)) == schedule == ff.Schedule.from_flags(fuse=["full"], prefetch=["W=4"])
try:
    ff.Schedule.from_yaml("prefetch:\n  W: 65\n", "s.yaml")
except ScheduleError as error:
    assert "s.yaml:2:3" in str(error) and "prefetch of `W`: 65 is not a number of lines" in str(error)
else:
    raise AssertionError("65 lines are accepted")
try:
    ff.Schedule.from_flags(prefetch=["W=many"])
except UsageError as error:
    assert "`--prefetch W=many`: `many` is not a number of lines" in str(error)
else:
    raise AssertionError("`many` is accepted")
assert "--prefetch TENSOR=4" in CliRunner().invoke(main, ["compile", "--help-all"]).output
