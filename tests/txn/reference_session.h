#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "txn/session.h"

namespace nam::txn {

/// Faults of a broken engine. Each occurs every this many times; 0: never.
struct ReferenceFaults {
  uint64_t skip_validation = 0;  // a commit does not check for other changes since
  uint64_t read_newest = 0;      // a read ignores its snapshot
  uint64_t keep_aborted = 0;     // a commit that must abort leaves its first write behind
  uint64_t lose_write = 0;       // a commit forgets one of its writes
};

/// Snapshot isolation in its simplest form: one mutex, every version kept. It must outlive its sessions.
class ReferenceDatabase {
 public:
  void CreateTable(const std::string& name, size_t key_bytes, size_t row_bytes);
  std::unique_ptr<Session> NewSession();
  /// Call it before the sessions that it applies to.
  void set_faults(const ReferenceFaults& faults) { faults_ = faults; }

 private:
  friend class ReferenceSession;
  struct Version {
    uint64_t commit;
    std::optional<std::string> row;  // nullopt: deleted
  };
  struct Table {
    std::string name;
    size_t key_bytes;
    size_t row_bytes;
    std::map<std::string, std::vector<Version>> records;
  };
  static bool Due(uint64_t every, uint64_t& count) { return every != 0 && ++count % every == 0; }

  Mutex mutex_;
  std::vector<std::unique_ptr<Table>> tables_;
  uint64_t last_commit_ = 0;
  ReferenceFaults faults_;
  uint64_t validations_ = 0, reads_ = 0, aborts_ = 0, commits_ = 0;
};

}  // namespace nam::txn
