"""Addresses that the service listens on, and of its proxies."""

import ipaddress
from collections.abc import Sequence


def is_loopback(host: str) -> bool:
    """Returns whether only programs of this machine reach a service that listens on `host`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # another name
        return False


def with_mapped(networks: Sequence[str]) -> list[str]:
    """Returns networks, and those of IPv4 as IPv6 too: a socket that listens on `::` names clients so."""
    ipv4 = [network for network in map(ipaddress.ip_network, networks) if network.version == 4]
    return [*networks, *(f"::ffff:{each.network_address}/{96 + each.prefixlen}" for each in ipv4)]
