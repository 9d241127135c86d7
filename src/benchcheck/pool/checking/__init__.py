"""What a pool says about its benchmarks without any model: figures, tests against chance, findings."""
