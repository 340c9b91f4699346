"""cc_library, cc_binary, cc_test and nam_test: a folder's sources, compiled in groups.

Most of the time of compiling a file goes into reading its headers: 2.5 to 7.5 MB of them for a source of 10 KB.
So the sources of a library are not compiled one by one. They are included by a few generated files:

    execution/join/join_group_1.cc      #include "execution/join/direct_build.cc"
                                        #include "execution/join/direct_probe.cc"
                                        ...

Every source still includes what it uses, and compiles alone: `--config=by_file` compiles so. clang-tidy, clangd and
the fuzzers do the same. A name in a group's anonymous namespaces is declared once: tests/lint checks it.
"""

load("//third_party:source_group.bzl", "source_group")

# `./run build --groups` measures what a group costs. Below 8 files the headers dominate, above 16 a small change waits.
_FILES_PER_GROUP = 12

_TESTING = ["//third_party:gtest", "//third_party:gtest_main", "//third_party:gmock"]

def _chunks(files, size):
    """The files in order, dealt into as few equal groups of at most `size` as there can be."""
    count = (len(files) + size - 1) // size
    return [files[i * len(files) // count:(i + 1) * len(files) // count] for i in range(count)]

def _declare(rule, deps, copts, **kwargs):
    header = "precompiled"
    for dep in deps:
        if dep in _TESTING:
            header = "precompiled_testing"
    rule(
        deps = deps + select({
            "//third_party:by_file": [],
            "//conditions:default": ["//third_party:" + header],
        }),
        copts = select({
            "//third_party:by_file": [],
            "//conditions:default": ["-include", "$(BINDIR)/third_party/%s.h" % header, "-Winvalid-pch"],
        }) + copts,
        **kwargs
    )

def cc_library(
        name,
        srcs = None,
        hdrs = None,
        exclude = [],
        alone = {},
        files_per_group = _FILES_PER_GROUP,
        textual_hdrs = [],
        deps = [],
        copts = [],
        **kwargs):
    """A library of the folder's sources, or of those that are named.

    Args:
      name: the folder's name for the library of its sources; else that of a part.
      srcs: .cc files.
      hdrs: headers. Without both, all files of the folder.
      exclude: of these, what belongs to other targets.
      alone: sources that are compiled alone, each with the reason.
      files_per_group: the most sources that are compiled together.
      textual_hdrs: as Bazel's.
      deps: as Bazel's.
      copts: as Bazel's.
      **kwargs: as Bazel's.
    """
    if srcs == None and hdrs == None:
        srcs = native.glob(["*.cc"], exclude = exclude, allow_empty = True)
        hdrs = native.glob(["*.h"], exclude = exclude, allow_empty = True)
    srcs, hdrs = srcs or [], hdrs or []
    for file in alone:
        if file not in srcs:
            fail("%s: %s is compiled alone, and is no source" % (name, file))
    grouped = [file for file in srcs if file.endswith(".cc") and file not in alone]
    groups = _chunks(grouped, files_per_group) if len(grouped) > 1 else []
    compiled = [file for file in srcs if not groups or file not in grouped]
    for number, files in enumerate(groups, 1):
        group = "%s_group_%d" % (name, number)
        source_group(name = group, srcs = files, out = group + ".cc")
        compiled = compiled + [group + ".cc"]
    _declare(
        native.cc_library,
        name = name,
        srcs = select({"//third_party:by_file": srcs, "//conditions:default": compiled}),
        hdrs = hdrs,
        textual_hdrs = textual_hdrs + (select({
            "//third_party:by_file": [],
            "//conditions:default": grouped,
        }) if groups else []),
        deps = deps,
        copts = copts,
        **kwargs
    )

def cc_binary(name, deps = [], copts = [], **kwargs):
    _declare(native.cc_binary, name = name, deps = deps, copts = copts, **kwargs)

def cc_test(name, deps = [], copts = [], **kwargs):
    _declare(native.cc_test, name = name, deps = deps, copts = copts, **kwargs)

def nam_test(
        name,
        srcs = [],
        own_process = {},
        exclude = [],
        alone = {},
        files_per_group = _FILES_PER_GROUP,
        textual_hdrs = [],
        deps = [],
        size = "medium",
        data = [],
        **kwargs):
    """The test of a folder: its *_test.cc in one program, but for those that need a process of their own.

    `bazel test //tests/sql:sql_test --test_filter=BindTest.*` runs some of its cases.

    Args:
      name: the folder's name and _test.
      srcs: .cc files of the folder beside *_test.cc.
      own_process: *_test.cc, each a test of its own name, with the reason why it cannot share a process.
      exclude: *_test.cc that belong to other targets.
      alone: as cc_library's.
      files_per_group: as cc_library's.
      textual_hdrs: as cc_library's.
      deps: of all files; GoogleTest need not be named.
      size: as Bazel's, of each test.
      data: as Bazel's.
      **kwargs: env, shard_count and so on of the folder's test.
    """
    cc_library(
        name = name + "_cases",
        testonly = True,
        srcs = srcs + native.glob(["*_test.cc"], exclude = exclude + srcs + own_process.keys()),
        hdrs = native.glob(["*.h"], allow_empty = True),
        alone = alone,
        files_per_group = files_per_group,
        textual_hdrs = textual_hdrs,
        # Nothing refers to a case.
        alwayslink = True,
        deps = deps + ["//third_party:gtest"],
    )
    native.cc_test(
        name = name,
        size = size,
        data = data,
        deps = [":" + name + "_cases", "//third_party:gtest_main"],
        **kwargs
    )
    for file in own_process:
        cc_test(
            name = file[:-len(".cc")],
            size = size,
            srcs = [file] + native.glob(["*.h"], allow_empty = True),
            data = data,
            deps = deps + ["//third_party:gtest_main"],
        )
