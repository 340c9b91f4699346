#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/txn/accounts.h"
#include "tests/txn/record_cluster.h"
#include "txn/rsi/session.h"

/// Ten thousand sessions over tcp, of four members that each share some clients.
namespace nam::txn {
namespace {

constexpr uint32_t kMembers = 4, kSessionsOfEach = 2'500, kThreadsOfEach = 8, kServers = 2;
constexpr uint32_t kClientsMax = 16;
/// A thread that does not run for a while is skipped, and with so many threads that is often.
constexpr uint32_t kSkipsRetried = 1'000;

struct MemberProcess {
  MemberProcess(RecordCluster& cluster, uint32_t id)
      : fabric(cluster.OpenFabric("client")), tables(cluster, *fabric, id) {}
  std::unique_ptr<fabric::Fabric> fabric;
  RecordCluster::Member tables;
  std::vector<std::unique_ptr<Session>> sessions;
};

uint64_t ResidentKib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6));
  }
  return 0;
}

size_t OpenFiles() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

absl::Status Put(Session& session, TableHandle table, uint64_t key) {
  if (absl::Status begun = session.Begin(); !begun.ok()) return begun;
  if (absl::Status put = session.Insert(table, Bytes(Account{key, 1})); !put.ok()) return put;
  return session.Commit().status();
}

TEST(ManySessions, TenThousandOpenAndCommit) {
  RecordCluster cluster({.kind = fabric::Kind::kTcp, .servers = kServers});
  cluster.AddTable("accounts", {.row_bytes = sizeof(Account)});
  std::vector<std::unique_ptr<MemberProcess>> processes;
  for (uint32_t i = 0; i < kMembers; ++i)
    processes.push_back(std::make_unique<MemberProcess>(cluster, i + 1));
  const size_t files_before = OpenFiles();
  const auto open = [&](uint32_t sessions) {
    for (const std::unique_ptr<MemberProcess>& process : processes) {
      while (process->sessions.size() < sessions) {
        auto session =
            OpenRsiSession(process->tables, {.clients_max = kClientsMax, .skips_retried = kSkipsRetried});
        ASSERT_TRUE(session.ok()) << session.status() << ": session " << process->sessions.size();
        process->sessions.push_back(*std::move(session));
      }
    }
  };
  ASSERT_NO_FATAL_FAILURE(open(kClientsMax));
  const size_t files = OpenFiles();
  const uint64_t resident_kib = ResidentKib();
  ASSERT_NO_FATAL_FAILURE(open(kSessionsOfEach));
  EXPECT_EQ(OpenFiles(), files) << "a session has a connection of its own";
  EXPECT_LT(ResidentKib() - resident_kib, uint64_t{kMembers} * kSessionsOfEach * 2) << "2 KiB a session";
  std::atomic<uint64_t> committed = 0;
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (uint32_t thread = 0; thread < kMembers * kThreadsOfEach; ++thread) {
      MemberProcess& process = *processes[thread % kMembers];
      threads.push_back(process.fabric->StartThread("sessions", [&, thread] {
        for (uint32_t i = thread / kMembers; i < kSessionsOfEach; i += kThreadsOfEach) {
          Session& session = *process.sessions[i];
          const auto table = session.OpenTable("accounts");
          ASSERT_TRUE(table.ok()) << table.status();
          const absl::Status put = Put(session, *table, i * kMembers + thread % kMembers);
          ASSERT_TRUE(put.ok()) << put;
          ++committed;
        }
      }));
    }
  }
  EXPECT_EQ(committed, kMembers * kSessionsOfEach);
  // Both ends of a connection are in this process; a client also has its completion queue.
  EXPECT_LE(OpenFiles() - files_before, kMembers * kClientsMax * (2 * kServers + 2));
  Session& reader = *processes[0]->sessions[0];
  const TableHandle table = *reader.OpenTable("accounts");
  ASSERT_TRUE(reader.Begin().ok());
  uint64_t rows = 0;
  ASSERT_TRUE(reader
                  .Scan(table,
                        [&](std::span<const std::byte>) {
                          ++rows;
                          return true;
                        })
                  .ok());
  EXPECT_EQ(rows, committed);
  reader.Abort();
}

}  // namespace
}  // namespace nam::txn
