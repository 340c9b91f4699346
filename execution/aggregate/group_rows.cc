// Groups whose keys are rows at rest.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/status_macros.h"
#include "execution/aggregate/groups.h"
#include "execution/aggregate/row_scratch.h"
#include "execution/positions.h"
#include "execution/rows/row_hash.h"
#include "types/hash.h"

namespace nam::execution {
absl::Status Groups::PrepareRows() {
  if (key_table_ != nullptr) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(key_table_, rows_.Table());
  scratch_ = std::make_unique_for_overwrite<RowScratch>();
  scratch_->keys.resize(keys_.size());
  appender_.emplace(*key_table_, keys_.program());
  return absl::OkStatus();
}

/// False: the frame has the error.
bool Groups::HashKeys(const Program& program, Frame& frame, const Chunk& chunk) {
  const Selection rows = chunk.selection();
  uint64_t* const hashes = scratch_->wide;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const Vector* const values = program.Evaluate(i, frame, chunk, rows);
    if (values == nullptr) return false;
    scratch_->keys[i] = values;
    AddHashes(*values, rows, i == 0, hashes);
  }
  if (keys_.size() == 0) std::fill_n(hashes, chunk.size(), kHashOfNothing);
  for (uint32_t j = 0; j < rows.count; ++j) scratch_->hashes[j] = static_cast<uint32_t>(hashes[rows[j]]);
  return true;
}

absl::Status Groups::AssignRows(const Chunk& chunk, uint32_t* groups) {
  const Selection rows = chunk.selection();
  NAM_RETURN_IF_ERROR(PrepareRows());
  NAM_RETURN_IF_ERROR(CheckNumbered(rows.count));
  NAM_RETURN_IF_ERROR(table_.Reserve(rows.count));
  NAM_RETURN_IF_ERROR(row_of_.Grow(uint64_t{size_} + rows.count));
  NAM_RETURN_IF_ERROR(hash_of_.Grow(uint64_t{size_} + rows.count));
  if (!HashKeys(keys_.program(), frame_, chunk)) return frame_.error();
  RowScratch& s = *scratch_;
  if (table_.far()) {
    for (uint32_t j = 0; j < rows.count; ++j) table_.Prefetch(s.hashes[j]);
  }
  for (uint32_t j = 0; j < rows.count; ++j) s.slots[j] = table_.First(s.hashes[j]);
  std::copy_n(kPositions.data(), rows.count, s.open);
  // Each round finds the next slot with its hash for every open tuple, writes the rows of new groups at once,
  // and compares key by key. Tuples of other groups with the same hash stay open.
  for (uint32_t open = rows.count; open > 0;) {
    const uint32_t first = size_;
    FindOrAdd(open, rows, groups);
    NAM_RETURN_IF_ERROR(appender_->Append(chunk, {s.fresh, s.fresh_count}, row_of_.data() + first));
    std::fill_n(s.same, s.found_count, 1);
    for (size_t i = 0; i < keys_.size(); ++i) MatchKey(i, rows, groups);
    open = 0;
    for (uint32_t k = 0; k < s.found_count; ++k) {
      if (s.same[k] != 0) continue;
      const uint32_t tuple = s.found[k];
      s.slots[tuple] = table_.Next(s.slots[tuple]);
      s.open[open++] = tuple;
    }
  }
  return absl::OkStatus();
}

void Groups::FindOrAdd(uint32_t open, Selection rows, uint32_t* groups) {
  RowScratch& s = *scratch_;
  s.found_count = s.fresh_count = 0;
  for (uint32_t k = 0; k < open; ++k) {
    const uint32_t tuple = s.open[k];
    const uint32_t hash = s.hashes[tuple];
    uint64_t at = s.slots[tuple];
    while (!table_.Empty(at) && table_.Hash(at) != hash) at = table_.Next(at);
    s.slots[tuple] = at;
    if (table_.Empty(at)) {
      table_.Put(at, hash, size_);
      hash_of_[size_] = hash;
      groups[tuple] = size_++;
      s.fresh[s.fresh_count++] = rows[tuple];
    } else {
      groups[tuple] = table_.Group(at);
      s.found[s.found_count++] = tuple;
    }
  }
}

/// Clears same[k] where key i of found[k] differs from its group's.
void Groups::MatchKey(size_t i, Selection rows, const uint32_t* groups) {
  RowScratch& s = *scratch_;
  const Vector& values = *s.keys[i];
  const RowField& field = key_table_->layout().field(i);
  const std::byte* const base = key_table_->page(0);
  const auto match = [&](auto&& equal) {
    for (uint32_t k = 0; k < s.found_count; ++k) {
      const uint32_t at = rows[s.found[k]];
      const uint32_t number = row_of_[groups[s.found[k]]];
      const std::byte* const row = field.RowOf(base, number);
      const bool null = values.null(at);
      s.same[k] &= null == field.IsNull(row) && (null || equal(at, row, number));
    }
  };
  if (values.physical == Physical::kText) {
    match([&](uint32_t at, const std::byte* row, uint32_t number) {
      return field.Text(field.PageOf(base, number), row) == values.text[at];
    });
    return;
  }
  WithStored(field.width, [&](auto zero) {
    using Stored = decltype(zero);
    if constexpr (sizeof(Stored) == 16) {
      match([&](uint32_t at, const std::byte* row, uint32_t) {
        return static_cast<__int128>(field.Stored<Stored>(row)) == values.number(at);
      });
    } else {
      // Values are within the field's bounds, so their distances from its base distinguish them.
      const auto base_of = static_cast<uint64_t>(field.base);
      const auto compare = [&](const auto* of) {
        match([&](uint32_t at, const std::byte* row, uint32_t) {
          return static_cast<uint64_t>(field.Stored<Stored>(row)) == static_cast<uint64_t>(of[at]) - base_of;
        });
      };
      if (values.physical == Physical::kInt64) {
        compare(values.narrow);
      } else if (values.physical == Physical::kTruth) {
        compare(values.truth);
      } else {
        compare(values.wide);
      }
    }
  });
}

/// Rows of one layout with equal keys have equal bytes, except texts.
bool Groups::SameRow(uint32_t a, uint32_t b) const {
  const RowTable& table = *key_table_;
  const std::byte *const x = table.row(a), *const y = table.row(b);
  if (!texts_) return std::memcmp(x, y, table.layout().stride()) == 0;
  const std::byte* const base = table.page(0);
  for (size_t i = 0; i < keys_.size(); ++i) {
    const RowField& field = table.layout().field(i);
    const bool null = field.IsNull(x);
    if (null != field.IsNull(y)) return false;
    if (null) continue;
    if (field.physical == Physical::kText
            ? field.Text(field.PageOf(base, a), x) != field.Text(field.PageOf(base, b), y)
            : std::memcmp(x + field.offset, y + field.offset, field.width) != 0) {
      return false;
    }
  }
  return true;
}

absl::Status Groups::AdoptRows(const Groups& other, std::span<const uint32_t> theirs, uint32_t* mine) {
  const auto count = static_cast<uint32_t>(theirs.size());
  NAM_RETURN_IF_ERROR(PrepareRows());
  NAM_RETURN_IF_ERROR(CheckNumbered(count));
  NAM_RETURN_IF_ERROR(table_.Reserve(count));
  NAM_RETURN_IF_ERROR(row_of_.Grow(uint64_t{size_} + count));
  NAM_RETURN_IF_ERROR(hash_of_.Grow(uint64_t{size_} + count));
  if (table_.far()) {
    for (uint32_t j = 0; j < count; ++j) table_.Prefetch(other.hash_of_[theirs[j]]);
  }
  for (uint32_t j = 0; j < count; ++j) {
    const uint32_t hash = other.hash_of_[theirs[j]];
    const uint32_t row = other.row_of_[theirs[j]];
    uint64_t at = table_.First(hash);
    while (!table_.Empty(at) && (table_.Hash(at) != hash || !SameRow(row_of_[table_.Group(at)], row))) {
      at = table_.Next(at);
    }
    if (table_.Empty(at)) {
      table_.Put(at, hash, size_);
      hash_of_[size_] = hash;
      row_of_[size_++] = row;
    }
    mine[j] = table_.Group(at);
  }
  return absl::OkStatus();
}

absl::Status Groups::ChangeToRows() {
  if (form_ == GroupForm::kRows) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(PrepareRows());
  table_.Clear();
  NAM_RETURN_IF_ERROR(table_.Reserve(size_));
  NAM_RETURN_IF_ERROR(row_of_.Grow(size_));
  NAM_RETURN_IF_ERROR(hash_of_.Grow(size_));
  RowAppender appender(*key_table_, keys_.slots());
  Frame frame = keys_.slots().NewFrame();
  Chunk chunk(keys_.size(), 0);
  KeyColumns memory;
  std::vector<uint32_t> groups(kChunkRows);
  for (uint32_t first = 0; first < size_; first += kChunkRows) {
    const uint32_t count = std::min(kChunkRows, size_ - first);
    std::iota(groups.begin(), groups.begin() + count, first);
    Read({groups.data(), count}, memory, chunk.columns().data());
    chunk.SelectAll(count);
    NAM_RETURN_IF_ERROR(appender.Append(chunk, chunk.selection(), row_of_.data() + first));
    if (!HashKeys(keys_.slots(), frame, chunk)) return frame.error();
    for (uint32_t j = 0; j < count; ++j) {
      const uint32_t hash = hash_of_[first + j] = scratch_->hashes[j];
      uint64_t at = table_.First(hash);
      while (!table_.Empty(at)) at = table_.Next(at);
      table_.Put(at, hash, first + j);
    }
  }
  form_ = GroupForm::kRows;
  direct_.Clear();
  number_of_.Clear();
  return absl::OkStatus();
}

}  // namespace nam::execution
