"""cc_library, cc_binary and cc_test as Bazel's, with the headers that every file reads compiled beforehand.

A file still includes what it uses: clang-tidy and the fuzzers compile without.
"""

_TESTING = ["//third_party:gtest", "//third_party:gtest_main", "//third_party:gmock"]

def _declare(rule, deps = [], copts = [], **kwargs):
    header = "precompiled"
    for dep in deps:
        if dep in _TESTING:
            header = "precompiled_testing"
    rule(
        deps = deps + ["//third_party:" + header],
        copts = ["-include", "$(BINDIR)/third_party/%s.h" % header, "-Winvalid-pch"] + copts,
        **kwargs
    )

def cc_library(**kwargs):
    _declare(native.cc_library, **kwargs)

def cc_binary(**kwargs):
    _declare(native.cc_binary, **kwargs)

def cc_test(**kwargs):
    _declare(native.cc_test, **kwargs)
