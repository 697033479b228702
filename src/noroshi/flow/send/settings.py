"""Settings of the providers: the registry in; the rows that the providers in it bring along out."""

from importlib import import_module

from noroshi.flow.send.parts import ProviderSetting
from noroshi.flow.send.registry import PROVIDERS


def provider_settings() -> tuple[ProviderSetting, ...]:
    """In the order of the registry: the `SETTINGS` of the module `settings` beside each provider's factory."""
    return tuple(row for path in PROVIDERS.values() for row in settings_of(path))


def settings_of(path: str) -> tuple[ProviderSetting, ...]:
    """Those of the provider whose factory is at this path."""
    package = path.partition(":")[0].rpartition(".")[0]
    rows: tuple[ProviderSetting, ...] = getattr(import_module(f"{package}.settings"), "SETTINGS", ())
    return rows
