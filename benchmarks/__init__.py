"""Speed, memory and start-up compared with other libraries: ``python -m benchmarks``."""
