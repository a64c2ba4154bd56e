"""Three parties at work on this machine: a service, a shuffler, and people's devices.

``parties`` runs them, ``search`` looks through all that they have stored, ``comparison`` plays the
same people in one process, and ``page`` reports.
"""
