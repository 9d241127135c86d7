"""The demo: a synthetic world, planted items whose truth is known, and two tiny checkpoints that read them.

The checkpoints are `models/large` and `models/small` (`embedded:large`, `embedded:small`); `models/CARD.md` says what
they can and cannot do. `training/` in the repository makes them.
"""
