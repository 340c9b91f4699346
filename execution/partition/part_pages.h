#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/chunk.h"
#include "execution/memory_budget.h"
#include "execution/partition/parts.h"
#include "execution/rows/long_page.h"
#include "execution/rows/row_layout.h"
#include "proto/pages.pb.h"
#include "storage/scratch.h"
#include "storage/scratch_streams.h"

namespace nam::execution {

/// The pages of all parts that the attempts of a stage have left, by part. Immutable; any thread.
class PartPages {
 public:
  /// Pages of one part that one attempt has written.
  struct Run {
    std::vector<storage::ScratchPage> pages;
    uint64_t attempt = 0;
    uint64_t rows = 0;
  };

  /// DATA_LOSS unless all directories come from attempts of the pipeline, and no attempt has two. If pages
  /// may have two layouts, `layout` is the one with more rows.
  static absl::StatusOr<PartPages> Make(std::span<const proto::Directory> directories, uint32_t pipeline,
                                        uint32_t parts, const RowLayout& layout, bool counts_nulls = false);

  const std::vector<Run>& RunsOf(uint32_t part) const { return by_part_[part]; }
  uint32_t parts() const { return static_cast<uint32_t>(by_part_.size()); }
  uint64_t RowsOf(uint32_t part) const;
  /// Over all parts: whether the sinks got no row at all, and whether they counted rows with a NULL key.
  bool empty() const { return empty_; }
  bool has_null_rows() const { return has_null_rows_; }

 private:
  std::vector<std::vector<Run>> by_part_;
  bool empty_ = true, has_null_rows_ = false;
};

/// One of `count` shares of a part: neighbouring pages, about as many bytes in each, and each page in one.
struct PartShare {
  uint32_t number = 0;
  uint32_t count = 1;
};

/// Reads the rows of a part, or of a share of it, on one thread.
class PartReader {
 public:
  /// References outlive the reader, which has the channel to itself. Some of the pages may have the `other`
  /// layout, which has the same keys; the digest distinguishes them. The budget pays for long pages.
  PartReader(const PartPages& pages, const RowLayout& layout, const PartBy& by, storage::Channel& channel,
             MemoryBudget& budget, const std::atomic<bool>& cancel, const RowLayout* other = nullptr);

  /// Begins a part, after the one before was read to its end. Rows with a NULL key, which equal no others,
  /// are in any slice of it, by their place.
  void Start(uint32_t part, PartSlice slice = {}, PartShare share = {});
  /// Returns the next rows of the slice: columns of `out` are the layout's fields. False: there are no more.
  /// Valid until the next call. DATA_LOSS: a page differs from its directory.
  absl::StatusOr<bool> Next(Chunk& out);
  /// Whether the rows have the other layout, and columns of `out` its fields.
  bool is_other() const { return page_layout_ == other_ && other_ != nullptr; }
  /// Replaces Next where that would begin a page all of whose rows are wanted: returns the whole page. Empty:
  /// call Next. Valid until the next call of either.
  absl::StatusOr<std::span<const std::byte>> NextWhole();

  uint64_t rows() const { return rows_read_; }
  const storage::ScratchReader& scratch() const { return reader_; }

 private:
  struct Reading {
    const PartPages::Run* run = nullptr;
    size_t pages = 0;  // its pages in the share
  };

  /// False: there is none.
  absl::StatusOr<bool> NextPage();
  /// Puts the pieces of a long page together, of which stretch_ is the first.
  absl::Status NextLongPage();
  absl::Status Open(std::span<const std::byte> page);
  /// The same, if the page before has been read to its end.
  absl::StatusOr<bool> HasPage();
  bool takes_all() const { return slice_.bits == 0; }
  absl::Status EndRun();
  /// Takes the share's pages, and sets runs_ to their runs.
  std::vector<storage::ScratchPage> TakeShare(const std::vector<PartPages::Run>& runs, PartShare share);
  /// Selects the rows [first, first + count) of the page that are of the slice.
  uint32_t SelectSlice(uint32_t first, uint32_t count);
  bool HasNullKey(uint32_t place) const;

  const PartPages& pages_;
  const RowLayout& layout_;
  const RowLayout* const other_;
  const RowLayout* page_layout_ = nullptr;
  const PartBy& by_;
  storage::ScratchReader reader_;
  PartSlice slice_;
  std::vector<Reading> runs_;
  size_t run_ = 0;                // in runs_: the page's
  size_t reads_left_ = 0;         // in that run, including stretch_'s
  size_t reads_ = 1;              // that brought the page
  uint64_t run_rows_ = 0;         // in that run, so far
  std::span<std::byte> stretch_;  // READ and not yet processed
  LongPage long_page_;
  const std::byte* page_ = nullptr;
  uint32_t page_bytes_ = 0;
  uint32_t rows_ = 0, done_ = 0;  // in the page
  uint64_t rows_before_ = 0;      // in the part's pages before it
  uint64_t rows_read_ = 0;
  std::unique_ptr<uint32_t[]> places_;     // in the page
  std::unique_ptr<uint32_t[]> positions_;  // in the part
  std::unique_ptr<uint64_t[]> hashes_;
};

}  // namespace nam::execution
