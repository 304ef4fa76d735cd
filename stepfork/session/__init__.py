"""Sessions: settings, modes, recording, replay. Knows no SDK."""
