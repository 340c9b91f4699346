"""A fuzzer: one file, run over its corpus in every test run, and by libFuzzer through `./run fuzz`."""

def fuzzer(name, deps):
    """Declares `<name>_fuzzer`, the function, and `<name>_replay_test`, which runs it over its corpus."""
    native.cc_library(
        name = name + "_fuzzer",
        testonly = True,
        srcs = [name + "_fuzzer.cc"],
        deps = deps + [":fuzz"],
    )
    native.cc_test(
        name = name + "_replay_test",
        size = "small",
        srcs = ["replay_test.cc"],
        args = ["tests/fuzz/corpus/" + name],
        data = native.glob(["corpus/" + name + "/*"]),
        deps = [
            ":" + name + "_fuzzer",
            "//third_party:gtest",
        ],
    )
