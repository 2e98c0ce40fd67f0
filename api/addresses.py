"""Addresses that the service listens on."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Returns whether only programs of this machine reach a service that listens on `host`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # another name
        return False
