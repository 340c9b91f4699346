#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "storage/channel.h"
#include "storage/remote_ptr.h"

namespace nam::bench {

/// The fabric's bound for a query that moves a number of bytes: READs of 64 KiB from all memory servers in
/// turn, 16 in flight per thread, without looking at the data. One caller at a time.
class ReadBound {
 public:
  static constexpr uint32_t kReadBytes = 64 << 10;
  static constexpr uint32_t kInFlight = 16;

  /// Opens a channel per thread. FAILED_PRECONDITION if no memory server has 64 KiB. `attachment` must
  /// outlive this object.
  static absl::StatusOr<std::unique_ptr<ReadBound>> Open(catalog::Attachment& attachment, int threads);
  /// Milliseconds until `bytes`, rounded up to whole READs, have arrived.
  absl::StatusOr<double> Run(uint64_t bytes);

 private:
  explicit ReadBound(fabric::Fabric& fabric) : fabric_(fabric) {}
  absl::Status FindPlaces(catalog::Attachment& attachment);

  fabric::Fabric& fabric_;
  std::vector<std::unique_ptr<storage::Channel>> channels_;
  std::vector<storage::RemotePtr<void>> places_;  // of 64 KiB, with servers in turn
};

}  // namespace nam::bench
