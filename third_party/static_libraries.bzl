"""How `nam` links libraries that Debian has as archives.

Loaded as shared libraries, with 72 of them, they take most of the time that a command needs: the loader looks up
19,000 symbols before main(). libstdc++, libcrypto and libssl, libibverbs, which loads its drivers, and libxxhash, whose
archive lacks the choice by the processor, stay shared. Tests link all as shared libraries: docs/design/building.md.
"""

_ABSL = [
    "base",
    "bad_optional_access",
    "bad_variant_access",
    "city",
    "civil_time",
    "cord",
    "cord_internal",
    "cordz_functions",
    "cordz_handle",
    "cordz_info",
    "debugging_internal",
    "demangle_internal",
    "exponential_biased",
    "graphcycles_internal",
    "hash",
    "hashtablez_sampler",
    "int128",
    "log_severity",
    "low_level_hash",
    "malloc_internal",
    "random_distributions",
    "random_internal_platform",
    "random_internal_pool_urbg",
    "random_internal_randen",
    "random_internal_randen_hwaes",
    "random_internal_randen_hwaes_impl",
    "random_internal_randen_slow",
    "random_internal_seed_material",
    "random_seed_gen_exception",
    "random_seed_sequences",
    "raw_hash_set",
    "raw_logging_internal",
    "spinlock_wait",
    "stacktrace",
    "status",
    "statusor",
    "str_format_internal",
    "strerror",
    "strings",
    "strings_internal",
    "symbolize",
    "synchronization",
    "throw_delegate",
    "time",
    "time_zone",
]

_ARCHIVES = [
    "grpc++",
    "grpc",
    "gpr",
    "address_sorting",
    "upb",
    "cares",
    "protobuf",
    "pg_query",
    "re2",
    "sqlite3",
    "zstd",
    "z",
    "edit",
    "tinfo",
    "bsd",
    "md",
] + ["absl_" + name for name in _ABSL]

# The shared libraries that the targets name come behind these, and are left out if nothing is missing.
_STATIC = (["-Wl,--start-group"] + ["-l:lib%s.a" % name for name in _ARCHIVES] +
           ["-Wl,--end-group", "-Wl,--as-needed", "-lssl"])

STATIC_LIBRARIES = select({
    "//third_party:shared_libraries": [],
    "//conditions:default": _STATIC,
})
