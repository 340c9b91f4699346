#include "computeserver/compactor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "partitioner/compaction.h"
#include "partitioner/compaction_rule.h"

namespace nam::computeserver {
namespace {

/// Another server, or VACUUM, has been faster so often.
constexpr int kTriesMax = 5;
/// A merge that lacked something (memory, room on a disk, a server) will hardly get it sooner.
constexpr int64_t kRestNs = 1'000'000'000;
/// A table's name; the catalog has no longer ones.
constexpr size_t kNameBytesMax = 128;

uint64_t RowsOf(const proto::Table& table, const std::vector<uint32_t>& groups) {
  uint64_t rows = 0;
  for (const uint32_t group : groups) rows += catalog::GroupRows(table, group);
  return rows;
}

}  // namespace

void Compactor::Look(const std::string& table) {
  const MutexLock lock(mutex_);
  const int64_t now_ns = attachment_.fabric().clock().NowNs();
  std::erase_if(failed_ns_, [&](const auto& failed) { return now_ns - failed.second > kRestNs; });
  if (stopping_ || table.size() > kNameBytesMax || failed_ns_.contains(table) ||
      waiting_.size() >= kWaitingMax || std::find(waiting_.begin(), waiting_.end(), table) != waiting_.end())
    return;
  waiting_.push_back(table);
  if (std::exchange(running_, true)) return;
  thread_ = attachment_.fabric().StartThread("nam-compact", [this] { Run(); });
}

void Compactor::Stop() {
  stopping_ = true;
  std::unique_ptr<fabric::Thread> thread;
  {
    const MutexLock lock(mutex_);
    thread = std::move(thread_);
  }
  thread.reset();
}

void Compactor::Run() {
  while (true) {
    std::string table;
    {
      const MutexLock lock(mutex_);
      if (stopping_ || waiting_.empty()) {
        running_ = false;
        return;
      }
      table = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const absl::Status status = Compact(table);
    if (status.ok() || stopping_ || absl::IsNotFound(status)) continue;
    {
      const MutexLock lock(mutex_);
      failed_ns_[table] = attachment_.fabric().clock().NowNs();
    }
    LogWarning(absl::StrFormat("groups of table %s were not compacted: %s", table, status.message()));
  }
}

absl::Status Compactor::Compact(const std::string& name) {
  Clock& clock = attachment_.fabric().clock();
  for (int tries = 1; !stopping_;) {
    NAM_ASSIGN_OR_RETURN(const std::shared_ptr<const proto::Table> table,
                         attachment_.catalog().GetTable(name));
    const std::vector<uint32_t> groups = partitioner::GroupsToMerge(*table);
    if (groups.empty()) break;
    const int64_t began_ns = clock.NowNs();
    const absl::Status status =
        partitioner::CompactGroups(attachment_, *table, groups, {.threads = 1, .cancel = &stopping_});
    if (absl::IsAborted(status) && tries++ < kTriesMax) continue;
    NAM_RETURN_IF_ERROR(status);
    LogInfo(absl::StrFormat("compacted table %s: %d of %d groups, %d rows, in %.1f ms", name, groups.size(),
                            catalog::GroupCount(*table), RowsOf(*table, groups),
                            static_cast<double>(clock.NowNs() - began_ns) / 1e6));
  }
  return absl::OkStatus();
}

}  // namespace nam::computeserver
