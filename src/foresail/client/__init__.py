"""The client of a service: for programs, and for the command line.

>>> from foresail.client.service_client import ServiceClient
"""
