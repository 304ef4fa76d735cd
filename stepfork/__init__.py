"""stepfork: an agent fails once; its recorded run becomes a pytest test that runs offline for ever.

The public names, and nothing else.
"""

from stepfork.api import (
    autopatch,
    expect,
    is_replaying,
    load,
    record,
    replay,
    tool,
    unpatch,
    use_cassette,
)
from stepfork.core.model import Call, Trajectory
from stepfork.errors import (
    BlockedNetworkError,
    CassetteError,
    CassetteNotFoundError,
    ConfigError,
    NoCassetteError,
    RecordingError,
    ReplayMismatchError,
    StepforkError,
    UnsupportedCallError,
)
from stepfork.session.run import Run

__all__ = [
    "BlockedNetworkError",
    "Call",
    "CassetteError",
    "CassetteNotFoundError",
    "ConfigError",
    "NoCassetteError",
    "RecordingError",
    "ReplayMismatchError",
    "Run",
    "StepforkError",
    "Trajectory",
    "UnsupportedCallError",
    "autopatch",
    "expect",
    "is_replaying",
    "load",
    "record",
    "replay",
    "tool",
    "unpatch",
    "use_cassette",
]
