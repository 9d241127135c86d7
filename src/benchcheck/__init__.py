"""benchcheck finds the items of a video benchmark that can be answered without watching.

Importing this package imports nothing heavy and does nothing; each public name is loaded when it is first used.
"""

__version__ = "0.1.0"
