#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/chunk.h"
#include "execution/partition/parts.h"
#include "execution/rows/row_layout.h"
#include "proto/pages.pb.h"
#include "storage/scratch.h"
#include "storage/scratch_streams.h"

namespace nam::execution {

/// The pages of all parts that the attempts of a stage have left, by part. Immutable; any thread.
class PartPages {
 public:
  /// Pages of one part that one attempt has written, or, with rows of any part.
  struct Run {
    std::vector<storage::ScratchPage> pages;
    uint64_t attempt = 0;
    uint64_t rows = 0;
    bool any_part = false;
  };

  /// DATA_LOSS unless all directories are what attempts of the pipeline leave, and no attempt has two. Of two
  /// layouts that pages may have, the one with more rows is given.
  static absl::StatusOr<PartPages> Make(std::span<const proto::Directory> directories, uint32_t pipeline,
                                        uint32_t parts, const RowLayout& layout, bool counts_nulls = false);

  /// What is to be read for a part: its own runs, then those with rows of any part.
  std::vector<const Run*> RunsOf(uint32_t part) const;
  uint32_t parts() const { return static_cast<uint32_t>(by_part_.size()); }
  /// Of the part, at most: those that may be of any part are among them.
  uint64_t RowsOf(uint32_t part) const;
  /// Of all parts together: whether the sinks were given no row at all, and whether they have counted some
  /// that have a NULL as a key.
  bool empty() const { return empty_; }
  bool has_null_rows() const { return has_null_rows_; }

 private:
  std::vector<std::vector<Run>> by_part_;
  std::vector<Run> any_;
  bool empty_ = true, has_null_rows_ = false;
};

/// One of `count` shares of a part: neighbouring pages, about as many bytes in each, and each page in one.
struct PartShare {
  uint32_t number = 0;
  uint32_t count = 1;
};

/// One thread's way through the rows of a part, or of a share of it.
class PartReader {
 public:
  /// What is referred to outlives the reader, which has the channel to itself. Some of the pages may be of
  /// the `other` layout, which has the same keys, and is told apart by its digest.
  PartReader(const PartPages& pages, const RowLayout& layout, const PartBy& by, storage::Channel& channel,
             const std::atomic<bool>& cancel, const RowLayout* other = nullptr);

  /// Begins with a part, after the one before was read to its end. Rows with a NULL as a key, which are equal
  /// to no others, are in any slice of it, by their place.
  void Start(uint32_t part, PartSlice slice = {}, PartShare share = {});
  /// The next rows of the slice: columns of `out` are the layout's fields. False: there are no more. Valid
  /// until the next call. DATA_LOSS: a page is not what its directory says.
  absl::StatusOr<bool> Next(Chunk& out);
  /// Whether the rows are of the other layout, and columns of `out` its fields.
  bool is_other() const { return page_layout_ == other_ && other_ != nullptr; }
  /// In the place of Next, where that would begin a page all of whose rows are wanted: all of them, in the
  /// layout's page. Empty: Next says what comes. Valid until the next call of either.
  absl::StatusOr<std::span<const std::byte>> NextWhole();

  uint64_t rows() const { return rows_read_; }
  const storage::ScratchReader& scratch() const { return reader_; }

 private:
  struct Reading {
    const PartPages::Run* run = nullptr;
    size_t pages = 0;  // of it, that are in the share
  };

  /// False: there is none.
  absl::StatusOr<bool> NextPage();
  /// The same, if the page before has been read to its end.
  absl::StatusOr<bool> HasPage();
  bool takes_all() const { return !runs_[run_].run->any_part && slice_.bits == 0; }
  absl::Status EndRun();
  /// The share's pages, and in runs_ whose they are.
  std::vector<storage::ScratchPage> TakeShare(const std::vector<const PartPages::Run*>& runs,
                                              PartShare share);
  /// Those of the rows [first, first + count) of the page that are of the part and of the slice.
  uint32_t SelectWanted(uint32_t first, uint32_t count);
  bool HasNullKey(uint32_t place) const;

  const PartPages& pages_;
  const RowLayout& layout_;
  const RowLayout* const other_;
  const RowLayout* page_layout_ = nullptr;
  const PartBy& by_;
  storage::ScratchReader reader_;
  uint32_t part_ = 0;
  PartSlice slice_;
  std::vector<Reading> runs_;
  size_t run_ = 0;                // of runs_, that the page is of
  size_t reads_left_ = 0;         // of that run, with the one that stretch_ is of
  uint64_t run_rows_ = 0;         // of that run, so far
  std::span<std::byte> stretch_;  // what was READ and not looked at
  const std::byte* page_ = nullptr;
  uint32_t rows_ = 0, done_ = 0;  // of the page
  uint64_t rows_before_ = 0;      // in pages of the part before it
  uint64_t rows_read_ = 0;
  std::unique_ptr<uint32_t[]> places_;     // of rows in the page
  std::unique_ptr<uint32_t[]> positions_;  // those of the part
  std::unique_ptr<uint64_t[]> hashes_;
};

}  // namespace nam::execution
