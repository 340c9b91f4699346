#!/usr/bin/env python3
"""Links, paths and the glossary's order in the documents. Usage: documents.py ROOT | documents.py --self-test

Entries of a section of docs/glossary.md, paragraphs that begin with a bold word, are in alphabetical order. A link
leads to a file of the tree and, behind #, to a heading of it; a path in backticks, `storage/block.h`, is there.
Prints one line `file: what` for every offence; the exit code is 1 if there is one.
"""
import os
import re
import sys
import tempfile

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs")
CODE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
ENTRY = re.compile(r"\n\n(?:(## )|\*\*([^*,(]+))")
PATH = re.compile(r"`([a-z_0-9]+(?:/[a-z_0-9]+)*/[a-z_0-9]+\.(?:h|cc|py|sh|proto|md|txt))(?=[`:])")


def anchor(heading):
    """As GitHub makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def documents(root):
    for place in DOCUMENTS:
        path = os.path.join(root, place)
        if os.path.isfile(path):
            yield place
        for where, _, files in os.walk(path):
            for name in sorted(files):
                if name.endswith(".md"):
                    yield os.path.relpath(os.path.join(where, name), root)


def prose(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return CODE.sub("", file.read())


def disordered(text):
    """Entries that come behind a later one of the alphabet."""
    before = ""
    for heading, entry in ENTRY.findall(text):
        word = entry.lower().replace("-", " ").replace("'s", "").strip()
        if word < before and not heading:
            yield entry.strip()
        before = word


def check(root):
    count, offences = 0, []
    for path in documents(root):
        count += 1
        text = prose(root, path)
        if path == "docs/glossary.md":
            offences += ["%s: %s is out of order" % (path, entry) for entry in disordered(text)]
        for link in LINK.findall(text):
            if "://" in link:
                continue
            to, _, heading = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(path), to)) if to else path
            if not os.path.exists(os.path.join(root, target)):
                offences.append("%s: a link to %s, which is not there" % (path, link))
            elif heading and heading not in map(anchor, re.findall(r"^#+ (.*)$", prose(root, target), re.MULTILINE)):
                offences.append("%s: a link to %s, which has no such heading" % (path, link))
        for named in PATH.findall(text):
            if not os.path.exists(os.path.join(root, named)):
                offences.append("%s: names %s, which is not there" % (path, named))
    return count, offences


def self_test():
    """Every rule finds its own offence."""
    texts = {
        "[a](docs/a.md#what-lasts)\n": 0,
        "`docs/a.md`, `docs/a.md:1`, `a.md`, [b](https://nowhere.example/c.md)\n```\n[d](e.md)\n```\n": 0,
        "[a](docs/b.md)\n": 1,
        "[a](docs/a.md#what-does-not)\n": 1,
        "[a](#here)\n": 1,
        "`docs/c.h`\n": 1,
    }
    glossaries = {
        "# G\n\n**a-z (b)**: 1\n\n**az**: b\n**a**\n\n## Others\n\n**a**: 2\n": [],
        "# G\n\n**b**: 1\n\n**a**: 2\n": ["a"],
    }
    for text, expected in glossaries.items():
        if list(disordered(text)) != expected:
            print("self test: %r: %s" % (text, list(disordered(text))))
            return 1
    for text, expected in texts.items():
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "docs"))
            for name, content in (("docs/a.md", "# A\n\n### What `lasts`\n"), ("README.md", text)):
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(content)
            count, offences = check(root)
            if count != 2 or len(offences) != expected:
                print("self test: %r: %s" % (text, offences))
                return 1
    return 0


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    count, offences = check(sys.argv[1])
    for offence in offences:
        print(offence)
    print("%d documents, %d offences" % (count, len(offences)))
    return 1 if offences or count == 0 else 0


sys.exit(main())
