"""An incident-triage agent: gathers evidence, asks a model how bad it is, applies the team's policy."""
