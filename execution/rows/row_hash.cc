#include "execution/rows/row_hash.h"

#include <algorithm>

#include "base/check.h"
#include "types/hash.h"

namespace nam::execution {
namespace {

struct Begin {
  uint64_t operator()(uint64_t, uint64_t hash) const { return hash; }
};
struct Combine {
  uint64_t operator()(uint64_t before, uint64_t hash) const { return CombineHashes(before, hash); }
};
/// Calls `body` with what joins a value's hash to those before, so that loops are compiled for each.
template <typename Body>
void WithJoin(bool first, Body&& body) {
  if (first) {
    body(Begin{});
  } else {
    body(Combine{});
  }
}

/// Adds hash(p), or NULL's where null(p).
template <typename Hash, typename Null>
void AddAt(Selection rows, bool first, uint64_t* hashes, Hash hash, Null null) {
  WithJoin(first, [&](auto join) {
    ForEach(rows, [=](uint32_t p) { hashes[p] = join(hashes[p], null(p) ? kHashOfNull : hash(p)); });
  });
}

template <typename Hash>
void AddAt(const Vector& vector, Selection rows, bool first, uint64_t* hashes, Hash hash) {
  if (vector.nulls == nullptr) {
    AddAt(rows, first, hashes, hash, [](uint32_t) { return false; });
  } else {
    AddAt(rows, first, hashes, hash, [nulls = vector.nulls](uint32_t p) { return nulls[p] != 0; });
  }
}

/// Rows of a page.
struct Rows {
  const std::byte* first;
  uint32_t count;
};

/// Adds hash(row), or NULL's where the field is NULL.
template <typename Hash>
void AddRows(const RowField& field, Rows rows, bool first, uint64_t* hashes, Hash hash) {
  WithJoin(first, [&](auto join) {
    const std::byte* row = rows.first;
    const uint32_t stride = field.stride;
    for (uint32_t i = 0; i < rows.count; ++i, row += stride) {
      hashes[i] = join(hashes[i], field.IsNull(row) ? kHashOfNull : hash(row));
    }
  });
}

/// Adds numbers below 16 bytes, and codes of any meaning.
void AddStored(const RowField& field, Rows rows, bool first, uint64_t* hashes) {
  WithStored(field.width, [&](auto zero) {
    using Stored = decltype(zero);
    if (field.physical == Physical::kText) {
      AddRows(field, rows, first, hashes, [&field](const std::byte* at) {
        return HashText(field.meaning->Text(static_cast<uint64_t>(field.Stored<Stored>(at))));
      });
      return;
    }
    const auto base = static_cast<uint64_t>(field.base);
    AddRows(field, rows, first, hashes, [&field, base](const std::byte* at) {
      return HashNumber(static_cast<int64_t>(base + static_cast<uint64_t>(field.Stored<Stored>(at))));
    });
  });
}

}  // namespace

void AddHashes(const Vector& vector, Selection rows, bool first, uint64_t* hashes) {
  switch (vector.physical) {
    case Physical::kTruth:
      return AddAt(
          rows, first, hashes, [truth = vector.truth](uint32_t p) { return HashNumber(int64_t{truth[p]}); },
          [truth = vector.truth](uint32_t p) { return truth[p] == kUnknown; });
    case Physical::kInt64:
      return AddAt(vector, rows, first, hashes, [n = vector.narrow](uint32_t p) { return HashNumber(n[p]); });
    case Physical::kInt128:
      return AddAt(vector, rows, first, hashes, [n = vector.wide](uint32_t p) { return HashNumber(n[p]); });
    case Physical::kText:
      return AddAt(vector, rows, first, hashes, [t = vector.text](uint32_t p) { return HashText(t[p]); });
    default:
      NAM_CHECK(false, "vectors have no values of this form");
  }
}

bool HashKeys(const Program& program, size_t first, size_t count, Frame& frame, const Chunk& chunk,
              Selection rows, uint64_t* hashes) {
  if (count == 0) ForEach(rows, [hashes](uint32_t p) { hashes[p] = kHashOfNothing; });
  for (size_t i = first; i < first + count; ++i) {
    const Vector* values = program.Evaluate(i, frame, chunk, rows);
    if (values == nullptr) return false;
    AddHashes(*values, rows, i == first, hashes);
  }
  return true;
}

void HashRows(const RowLayout& layout, std::span<const uint32_t> fields, const std::byte* page,
              uint32_t place, uint32_t count, uint64_t* hashes) {
  if (fields.empty()) std::fill_n(hashes, count, kHashOfNothing);
  const Rows rows{page + kPageHeaderBytes + size_t{place} * layout.stride(), count};
  for (size_t i = 0; i < fields.size(); ++i) {
    const RowField& field = layout.field(fields[i]);
    const bool first = i == 0;
    if (field.meaning == nullptr && field.physical == Physical::kText) {
      AddRows(field, rows, first, hashes,
              [&field, page](const std::byte* row) { return HashText(field.Text(page, row)); });
    } else if (field.width == 16) {
      AddRows(field, rows, first, hashes,
              [&field](const std::byte* row) { return HashNumber(field.Stored<__int128>(row)); });
    } else {
      AddStored(field, rows, first, hashes);
    }
  }
}

}  // namespace nam::execution
