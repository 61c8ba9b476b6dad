"""Plug-ins of the family ``cluster``; what they import of the client they import once connected."""
