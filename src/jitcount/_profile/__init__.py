"""Where the time of a compile goes: by source line, by phase, and into which unrolled loops."""
