"""A file that includes other sources: see cc.bzl."""

def _source_group_impl(ctx):
    ctx.actions.write(ctx.outputs.out, "".join(['#include "%s"\n' % file.short_path for file in ctx.files.srcs]))

source_group = rule(
    implementation = _source_group_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"], mandatory = True),
        "out": attr.output(mandatory = True),
    },
)
