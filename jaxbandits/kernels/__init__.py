"""One-lane programs as kernels of a GPU: plain C, in which a thread plays one lane with its numbers in registers.

No algorithm knows of it. `traced` traces a window of one lane; any function of one lane is traced as it is. `emitter`
writes what is traced as C: `text` has statements and names, `scalars` operations on numbers, `arrays` arrays, `rules`
operations on them, each said once and written in one of two `layouts`: without loops where arrays are small, as loops
over memory where they are large. `flow` has loops and branches. `fitting` says how much is held apart, by what
`schedule` counts, and `source` puts around it what each kernel begins with (`prelude`).

Two kinds of programs are written so. `plays` is a stretch of windows, from checkpoint to checkpoint, and `engine` says
which programs of a sweep run by it. `over_lanes` is a function that is called once, such as a geometric median, and
`filter_kernel` gives it the spectral filter; `numerics.device_forms` asks for these.

`launch` calls a kernel inside of a program that XLA compiles: on a GPU as PTX that `nvrtc` makes, by one of two routes,
or on a CPU as `by_cc` compiles the same text, by which all of it is tested where there is no GPU. `forms.forced` and
`device_forms.forced` ask for that.
"""
