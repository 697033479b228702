"""Settings of the providers: the registry in; the rows that the providers in it bring along out."""

from importlib import import_module

from noroshi.flow.send.parts import ProviderSetting
from noroshi.flow.send.registry import PROVIDERS


def provider_settings() -> tuple[ProviderSetting, ...]:
    """In the order of the registry: the `SETTINGS` of the module `settings` beside each provider's factory."""
    rows: list[ProviderSetting] = []
    for path in PROVIDERS.values():
        package = path.partition(":")[0].rpartition(".")[0]
        rows += getattr(import_module(f"{package}.settings"), "SETTINGS", ())
    return tuple(rows)
