#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "execution/chunk.h"
#include "execution/mapping_pool.h"
#include "execution/memory_budget.h"
#include "execution/partition/part_directory.h"
#include "execution/partition/parts.h"
#include "execution/rows/row_layout.h"
#include "execution/rows/row_writer.h"
#include "execution/task.h"
#include "storage/scratch.h"

namespace nam::execution {

/// Describes rows that go by parts, for all writers of one sink. Immutable.
struct PartedRows {
  RowLayout layout;  // PartLayout(rows, by.parts)
  PartBy by;
  uint64_t attempt = 0;  // carried by pages
  /// Per writer; beyond it the fullest page is written early.
  uint32_t open_pages_max = UINT32_MAX;
};

/// Writes tuples of chunks into pages in scratch memory by their part. A chunk's rows are first written
/// consecutively, column by column. Then their hashes are computed, and each row is copied into the open page
/// of its part:
///
///     chunk ── RowWriter ─▶ staging page ── hash, PartOf ─▶ open page a part ── full ─▶ ScratchWriter
///
/// The open pages are the software-managed buffers of a radix join, whose other ends lie in memory servers:
/// each part has a stretch for several pages that is this writer's alone, so that no page needs a message to
/// get its place.
///
/// One thread. The budget pays for a staging page, and one for each part that has rows, or fewer if that is
/// too much: a part without a page takes the fullest other one, once that is written. So two pages are
/// enough; a chunk's rows are then copied part by part, or pages would have a row each. In scratch memory a
/// page takes only the bytes of its rows (packed_page.h).
class PartitionWriter {
 public:
  /// Field i of the rows is output i of the program. All references outlive the writer. Several writers of
  /// one thread, for pages of one size, may share `scratch`.
  PartitionWriter(const PartedRows& rows, const Program& program, storage::ScratchWriter& scratch,
                  MemoryBudget& budget);
  ~PartitionWriter();

  /// 53200 if scratch memory is full; RESOURCE_EXHAUSTED if the budget is; the program's errors.
  absl::Status Append(TaskContext& context, const Chunk& chunk, Selection tuples);
  /// Writes the open pages and waits for all. Then the directory is complete.
  absl::Status Finish(TaskContext& context);

  const PartDirectory& directory() const { return directory_; }
  uint64_t pages() const { return pages_written_; }
  uint64_t bytes() const { return bytes_written_; }

 private:
  /// The place of a part's next row. Equal: its page is full, or there is none.
  struct Cursor {
    uint32_t next = 0;  // in the arena
    uint32_t end = 0;   // after the last row that fits, if rows have no texts
  };
  /// A page that rows are copied into. nullptr: the part has no row yet.
  struct OpenPage {
    std::byte* bytes = nullptr;
    uint32_t text_begin = 0;
    storage::ScratchStretch stretch;
    uint32_t stretch_rows = 0;
  };
  absl::Status MakeStaging();
  absl::StatusOr<std::byte*> NewPage();
  uint32_t RowsOf(uint32_t part) const;
  /// Empties the page of the part, which has one.
  void Clear(uint32_t part);
  /// Opens a page for a part without one.
  absl::StatusOr<std::byte*> OpenPageFor(TaskContext& context);
  absl::Status Scatter(TaskContext& context, uint32_t rows);
  /// Writes a row that fits no page, tuples[done], on a page of its own.
  absl::Status WriteLongRow(TaskContext& context, const Chunk& chunk, Selection tuples, uint32_t& done);
  template <uint32_t kStride>
  absl::Status ScatterRows(TaskContext& context, uint32_t rows);
  /// Scatters rows of any stride, with or without texts, in `order`, or in sequence if that is empty.
  absl::Status ScatterAny(TaskContext& context, uint32_t rows, std::span<const uint32_t> order);
  /// The rows' numbers, by part.
  std::span<const uint32_t> ByPart(uint32_t rows);
  /// Makes room in the part's page for a row with so many bytes of text.
  absl::Status MakeRoom(TaskContext& context, uint32_t part, uint32_t text_bytes);
  absl::Status WritePage(TaskContext& context, uint32_t part);
  absl::Status WriteToStretch(uint32_t part, std::span<const std::byte> page, uint32_t rows);
  void EndStretch(uint32_t part);

  const PartedRows& rows_;
  MemoryBudget& budget_;
  storage::ScratchWriter& scratch_;
  const RowLayout staged_;  // the same rows, on pages for a chunk of narrow ones
  RowWriter writer_;
  Frame frame_;
  std::vector<size_t> texts_;   // fields
  MappingPool::Mapping arena_;  // open pages
  uint32_t pages_ = 0;          // in the arena
  std::byte* staging_ = nullptr;
  std::vector<Cursor> cursors_;           // by part
  std::vector<OpenPage> open_;            // likewise
  std::unique_ptr<uint64_t[]> hashes_;    // of the staged rows
  std::unique_ptr<uint32_t[]> parts_of_;  // likewise
  bool short_of_pages_ = false;
  std::vector<uint32_t> order_, part_ends_;  // for ByPart
  PartDirectory directory_;
  uint64_t pages_written_ = 0, bytes_written_ = 0;
};

}  // namespace nam::execution
