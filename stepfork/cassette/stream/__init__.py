"""Event streams as what they said, and every byte back. Start in `codec`, which describes the form.

`encode` (`events`, `shapes`, `said`, `layout`, `series`, `macros`) and `decode` (`takes`, `leaves`) share the
small spellings of `spelling`. Knows no file, no SDK and no HTTP.
"""

from stepfork.cassette.stream.codec import Misfit, calls_of, check, decode, encode, text_of

__all__ = ["Misfit", "calls_of", "check", "decode", "encode", "text_of"]
