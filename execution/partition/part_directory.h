#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "execution/rows/row_layout.h"
#include "proto/pages.pb.h"
#include "storage/scratch.h"

namespace nam::execution {

/// The places of the pages that one attempt has written, by part. One thread at a time.
class PartDirectory {
 public:
  struct Part {
    std::vector<storage::ScratchPage> pages;
    uint64_t rows = 0;
  };

  /// Adds a page of the part, or several consecutive ones.
  void Add(uint32_t part, const storage::ScratchPage& pages, uint64_t rows) {
    Part& to = parts_[part];
    to.pages.push_back(pages);
    to.rows += rows;
  }
  /// Counts rows with a NULL key, which are not written.
  void AddNullRows(uint64_t rows) { null_rows_ += rows; }
  /// Adds what another thread of the attempt has written.
  void Add(const PartDirectory& other);

  /// Adds a page in pieces.
  void Add(uint32_t part, std::span<const storage::ScratchPage> pieces, uint64_t rows) {
    Part& to = parts_[part];
    to.pages.insert(to.pages.end(), pieces.begin(), pieces.end());
    to.rows += rows;
  }

  bool empty() const { return parts_.empty(); }
  const std::map<uint32_t, Part>& parts() const { return parts_; }
  /// For the coordinator: the attempt, whose number all pages carry, and the pipeline whose sink wrote them.
  proto::Directory ToProto(uint64_t attempt, uint32_t pipeline) const;

 private:
  std::map<uint32_t, Part> parts_;
  uint64_t null_rows_ = 0;
};

/// The pages of a part of a checked directory.
std::vector<storage::ScratchPage> PagesOf(const proto::PartPages& part);

/// DATA_LOSS unless a directory from elsewhere fits these parts: parts ascend, each page has a size and a
/// place that pages of the layout, long ones too, can have, no part claims more rows than its pages hold, and
/// only a sink that `counts_nulls` counts rows alone. Any page may be packed (packed_page.h).
absl::Status CheckDirectory(const proto::Directory& directory, uint32_t parts, const RowLayout& layout,
                            bool counts_nulls = false);

}  // namespace nam::execution
