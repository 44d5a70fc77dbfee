"""One-lane programs as kernels of a GPU, which hold a lane in registers for a whole stretch of plays.

No algorithm knows of it. `traced_window` traces a window of one lane, `apart` evaluates it with every array
element held apart, and `long_axis` lays many arms across the threads of a warp. `rows` says how lanes lie in
memory. `stretch` puts plays and checkpoints around all that in one kernel, `census` counts what is left, and
`engine` says which programs of a sweep run so. `forms.forced` plays them on any machine.

In programs that XLA compiles, `over_lanes` makes a kernel of a function of few numbers, and `spectral_filter` is one.
`numerics.device_forms` asks for them, and `device_forms.forced` runs them on any machine.
"""
