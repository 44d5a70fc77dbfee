"""JAX flags under which a sweep cannot work: named before anything runs, with the call that sets them back."""

from typing import Any

import jax

# flag: the values that break a sweep, what to set instead, and why
_GUARDS = {
    f"jax_transfer_guard_{way}": (
        ("disallow", "disallow_explicit"), "allow", "numbers of the sweep go to the device and back",
    )
    for way in ("host_to_device", "device_to_host", "device_to_device")
}  # fmt: skip
_CHECKS = {
    f"jax_error_checking_behavior_{kind}": (("raise",), "ignore", "its checks do not pass through vmap")
    for kind in ("nan", "oob", "divide")
}
BREAKING: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "jax_disable_jit": ((True,), False, "programs are compiled before they run"),
    "jax_no_tracing": ((True,), False, "programs are traced before they run"),
    **_GUARDS,
    **_CHECKS,
}


def check() -> None:
    """Raise ValueError naming the first flag whose value a sweep cannot work with."""
    config: Any = jax.config
    for flag, (breaking, instead, why) in BREAKING.items():
        value = getattr(config, flag, None)  # releases of JAX differ in their flags
        if value in breaking:
            raise ValueError(
                f"{flag} = {value!r} cannot be kept, {why}: set jax.config.update({flag!r}, {instead!r}) for the sweep"
            )
