#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"
#include "fabric/region_directory.h"
#include "storage/channel.h"
#include "storage/verb_batch.h"
#include "txn/extent_space.h"

namespace nam::txn {

/// Numbers for the columns of one record table, each handed out once: words in a memory server count them, by
/// FETCH_ADD. A client takes several at a time, so that what it leaves behind, dying or not, is a gap.
///
///     the table's part      │ column 0 │ column 1 │ column 2 │ …      8 bytes each
///                                          ▲ + 32: this client has 32 more
///
/// One thread.
class ColumnNumbers {
 public:
  static constexpr uint64_t kTakenAtOnce = 32;

  static absl::StatusOr<std::unique_ptr<ColumnNumbers>> Open(fabric::Fabric& fabric,
                                                             fabric::RegionDirectory& directory,
                                                             std::shared_ptr<ExtentSource> source,
                                                             uint64_t extent_bytes);
  /// After an error open others.
  absl::StatusOr<uint64_t> Next(uint32_t column);

 private:
  ColumnNumbers(std::unique_ptr<storage::Channel> channel, ExtentSpace space)
      : channel_(std::move(channel)), space_(std::move(space)), batch_(*channel_) {}

  struct Taken {
    uint64_t next = 0;
    uint64_t end = 0;
  };
  const std::unique_ptr<storage::Channel> channel_;
  ExtentSpace space_;
  storage::VerbBatch batch_;
  std::map<uint32_t, Taken> taken_;  // by column
};

}  // namespace nam::txn
