"""Speed, memory and start-up against the peers, at equal quality: ``python -m benchmarks``."""
