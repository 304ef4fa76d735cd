"""Programs of lines that fork and join, run under any legal schedule in real threads, tasks and pools."""
