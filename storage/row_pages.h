#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/scratch.h"
#include "storage/scratch_streams.h"

namespace nam::storage {

/// Rows of one size, or keys, that a session leaves in scratch memory for the servers that run its query:
///
///     page │ checksum of the rest, 8 bytes │ row │ row │ …        whole rows, kRowPageBytes at most
struct RowPages {
  std::vector<ScratchPage> pages;
  uint64_t rows = 0;
};

inline constexpr uint32_t kRowPageBytes = 64 << 10;

/// Writes them. One thread.
class RowPageWriter {
 public:
  /// A row fits a page. The scratch writer's pages have kRowPageBytes; it outlives this one.
  RowPageWriter(ScratchWriter& writer, uint32_t row_bytes);

  /// Errors as of ScratchWriter::Write.
  absl::Status Add(std::string_view row);
  /// Called once, at the end. The pages are valid once the writer is flushed.
  absl::StatusOr<RowPages> Finish();

 private:
  absl::Status EndPage();

  ScratchWriter& writer_;
  const uint32_t row_bytes_;
  std::vector<std::byte> page_;
  RowPages out_;
};

/// READs all of them, behind `rows`. DATA_LOSS: the pages hold something else. The reader's pages have
/// kRowPageBytes.
absl::Status ReadRowPages(ScratchReader& reader, const RowPages& pages, uint32_t row_bytes,
                          std::vector<std::string>& rows);

}  // namespace nam::storage
