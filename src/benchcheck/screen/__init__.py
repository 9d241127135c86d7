"""The ladder as pure functions: steps, prompts, readings and verdicts. No disk, network, clock or model in here."""
