"""The same answers whatever the cluster looks like: fabrics × memory servers × compute servers × block sizes."""
import os
import time

import cases
from cluster import MIB, Cluster

SCALE_FACTOR = float(os.environ.get("NAM_E2E_SCALE_FACTOR", "0.02"))
FABRICS = ("shm", "tcp")
MEMORY_SERVERS = (1, 2, 4)
COMPUTE_SERVERS = (1, 2, 3)
BLOCK_BYTES = (2048, 16 * 1024, 64 * 1024)


class Matrix(cases.Case):
    reference = None  # query → rows, checked against SQLite once

    def expected(self):
        if Matrix.reference is None:
            cluster = Cluster(self, compute=1)
            cluster.load(SCALE_FACTOR)
            report = cluster.done("ssb run", "--check", "--repeat=1", "--scale-factor=%g" % SCALE_FACTOR,
                                  "--format=json").json()
            self.assertEqual(report["summary"]["correct"], 13, report["summary"])
            Matrix.reference = {row["query"]: row["result"] for row in report["rows"]}
            cluster.stop()
            self.assertEqual(len(Matrix.reference), 13)
            self.assertGreater(sum(len(result["rows"]) for result in Matrix.reference.values()), 100)
        return Matrix.reference

    def compare(self, answers, where):
        expected = self.expected()
        self.assertEqual(sorted(answers), sorted(expected), where)
        for query in expected:
            self.assertEqual(answers[query], expected[query], "%s with %s" % (query, where))

    def one_combination(self, cluster, block_bytes):
        """Loads over what is there, then all 13 queries."""
        cluster.load(SCALE_FACTOR, "--block-bytes=%d" % block_bytes)
        report = cluster.done("ssb run", "--format=json", "--repeat=1").json()
        config = report["config"]
        self.assertEqual((config["fabric"], config["memory_servers"], config["compute_servers"],
                          config["block_bytes"]),
                         (cluster.fabric, len(cluster.memory), len(cluster.compute), block_bytes))
        where = "%s, %d memory servers, %d compute servers, blocks of %d bytes" % (
            cluster.fabric, len(cluster.memory), len(cluster.compute), block_bytes)
        self.compare({row["query"]: row["result"] for row in report["rows"]}, where)
        held = cluster.table_bytes()
        self.assertEqual(sorted(held), sorted(server.id for server in cluster.memory), "blocks on every server")
        return report["summary"]["geomean_ms"]

    def fabric_and_memory_servers(self, fabric, memory_servers):
        self.expected()
        cluster = Cluster(self, fabric=fabric, memory=[256 * MIB] * memory_servers, compute=0)
        for compute_servers in COMPUTE_SERVERS:
            cluster.add_compute(1)
            for block_bytes in BLOCK_BYTES:
                start = time.monotonic()
                geomean_ms = self.one_combination(cluster, block_bytes)
                self.say("%d compute servers, blocks of %5d bytes: identical; %.1f ms a query, %.1f s in all" %
                         (compute_servers, block_bytes, geomean_ms, time.monotonic() - start))

    def test_tbl_files(self):
        """Files of the generator, loaded with --from, give the same answers."""
        expected = self.expected()
        folder = self.scratch.file("tbl")
        made = self.scratch.nam("ssb", "generate", "--out=" + folder, "--scale-factor=%g" % SCALE_FACTOR)
        self.assertEqual(made.code, 0, made)
        self.assertEqual(sorted(os.listdir(folder)),
                         ["customer.tbl", "date.tbl", "lineorder.tbl", "part.tbl", "supplier.tbl"])
        for fabric in FABRICS:
            cluster = Cluster(self, fabric=fabric, memory=[256 * MIB] * 2, compute=2)
            cluster.done("ssb load", "--from=" + folder)
            self.assertEqual(len(expected), 13)
            self.compare(cluster.answers("--repeat=1"), fabric + ", .tbl files")
            again = cluster.nam("ssb load", "--from=" + folder)
            self.assertEqual(again.code, 1, again)
            self.assertIn("--replace", again.err)
            cluster.stop()


def add_cases():
    for fabric in FABRICS:
        for memory_servers in MEMORY_SERVERS:
            def case(self, fabric=fabric, memory_servers=memory_servers):
                self.fabric_and_memory_servers(fabric, memory_servers)
            case.__doc__ = "%s, %d memory servers: 3 numbers of compute servers × 3 block sizes" % (
                fabric, memory_servers)
            setattr(Matrix, "test_%s_%d_memory_servers" % (fabric, memory_servers), case)


add_cases()
cases.main()
