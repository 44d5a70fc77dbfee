"""One-lane programs as kernels of a GPU: plain C, in which a thread plays one lane with its numbers in registers.

No algorithm knows of it: functions of one lane are traced as they are. `emitter` writes what is traced as C, with its
loops and branches: `text` has statements and names, `scalars` operations on numbers, `rules` those on arrays, each said
once and written in one of two layouts of `arrays`: without loops where arrays are small, as loops over memory where
they are large. `schedule` orders statements, and says by their counts how much is held apart. `source` puts around it
what each kernel begins with.

Two kinds of programs are written so. `plays` is a stretch of windows, from checkpoint to checkpoint, and says which
windows of a sweep are one. `over_lanes` is a function that is called once, such as a geometric median, and
`filter_kernel` gives it the spectral filter; `numerics.device_forms` asks for these.

`launch` calls a kernel inside of a program that XLA compiles: on a GPU as PTX, by one of two routes, or on a CPU as the
C compiler takes the same text (`compilers`), by which all of it is tested where there is no GPU. `launch.force_form`
and `device_forms.force_device_form` ask for that.
"""
