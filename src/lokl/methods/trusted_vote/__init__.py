"""The trusted vote."""
