"""A fuzzer: one file, run over its corpus in every test run, and by libFuzzer through `./run fuzz`."""

load("//third_party:cc.bzl", "cc_library", "cc_test")

def fuzzer(name, deps):
    """Declares `<name>_fuzzer`, the function, and `<name>_replay_test`, which runs it over its corpus."""
    cc_library(
        name = name + "_fuzzer",
        testonly = True,
        srcs = [name + "_fuzzer.cc"],
        # The replay, which calls it, is linked behind it.
        alwayslink = True,
        deps = deps + [":fuzz"],
    )
    cc_test(
        name = name + "_replay_test",
        size = "small",
        args = ["tests/fuzz/corpus/" + name],
        data = native.glob(["corpus/" + name + "/*"]),
        deps = [
            ":" + name + "_fuzzer",
            ":replay",
        ],
    )
