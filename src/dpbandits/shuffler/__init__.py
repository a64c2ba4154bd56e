"""The shuffler as a process: ``dpbandits shuffle`` between devices and a service.

It collects one sealed record of each person of a batch, and sends the server what the protocol's
shuffler outputs.  See ``shuffle.sealing`` for what each party sees, and ``batch`` for the rules.
"""
