"""One-lane programs as kernels of a GPU, which hold a lane in registers for a whole stretch of plays.

No algorithm knows of it. `apart` evaluates a traced one-lane function with every array element held apart, `stretch`
puts plays and checkpoints around it in one kernel, `census` counts what is left, and `engine` says which programs of a
sweep run so. `forms.forced` plays them on any machine.

In programs that XLA compiles, `over_lanes` makes a kernel of a function of few numbers, and `spectral_filter` is one.
`numerics.device_forms` asks for them, and `device_forms.forced` runs them on any machine.
"""
