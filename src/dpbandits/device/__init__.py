"""A person's device that talks to a service: it chooses or asks for an arm, and reports with noise.

Features and rewards stay in the process.  Its messages have the noise of the experiment, of which
the device is sure by a config that came with the program.
"""

from .connected import ConnectedDevice

__all__ = ["ConnectedDevice"]
