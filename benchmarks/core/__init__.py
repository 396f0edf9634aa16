"""What all benchmarks are made of: databases, workers, samples, tables."""
