#include "execution/rows/row_layout.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "execution/rows/row_kernels.h"
#include "storage/checksum.h"
#include "types/date.h"
#include "types/value.h"

namespace nam::execution {
namespace {

constexpr uint8_t kTextBytes = 8;

/// The range of a type's numbers.
plan::Bounds BoundsOf(const Type& type) {
  switch (type.kind) {
    case TypeKind::kNull:
    case TypeKind::kBool:
      return {0, 1, true};
    case TypeKind::kDate:
      return {kLeastDay, kGreatestDay, true};
    case TypeKind::kTime:
      return {0, kMicrosecondsPerDay, true};
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampTz:
      return {kLeastDay * kMicrosecondsPerDay, (kGreatestDay + 1) * kMicrosecondsPerDay - 1, true};
    case TypeKind::kDouble:
    case TypeKind::kReal:
      return {INT64_MIN, INT64_MAX, true};
    case TypeKind::kInterval:
    case TypeKind::kNumeric:
    case TypeKind::kUuid:
      return {std::numeric_limits<__int128>::min(), std::numeric_limits<__int128>::max(), true};
    default: {
      const __int128 most = PowerOfTen(kMaxDecimalDigits) - 1;
      return {-most, most, true};
    }
  }
}

plan::Bounds BoundsOf(const plan::Slot& slot) {
  plan::Bounds bounds = BoundsOf(slot.type);
  if (!slot.bounds.known) return bounds;
  bounds.low = std::max(bounds.low, slot.bounds.low);
  bounds.high = std::min(bounds.high, slot.bounds.high);
  if (bounds.low > bounds.high) bounds = {0, 0, true};  // all are NULL
  return bounds;
}

uint8_t BytesFor(const plan::Bounds& bounds) {
  if (!bounds.narrow()) return 16;
  const auto range = static_cast<uint64_t>(bounds.high - bounds.low);
  return range <= UINT8_MAX ? 1 : range <= UINT16_MAX ? 2 : range <= UINT32_MAX ? 4 : 8;
}

/// The checksum excludes the gap between rows and texts, which is never read.
uint32_t ChecksumOf(const std::byte* page, PageHeader header, uint32_t stride) {
  header.checksum = 0;
  const uint64_t parts[] = {storage::Checksum(std::as_bytes(std::span(&header, 1))),
                            storage::Checksum({page + sizeof(header), size_t{header.rows} * stride}),
                            storage::Checksum({page + header.text_begin, header.bytes - header.text_begin})};
  return static_cast<uint32_t>(storage::Checksum(std::as_bytes(std::span(parts))));
}

absl::Status Broken(const char* what) {
  return absl::DataLossError(absl::StrCat("a page of rows from another server is broken: ", what));
}

/// Whether holds(row) is true for each row.
template <typename Holds>
bool AllRows(const std::byte* first, uint32_t rows, uint32_t stride, Holds&& holds) {
  bool all = true;
  for (uint32_t i = 0; i < rows; ++i) all &= holds(first + size_t{i} * stride);
  return all;
}

}  // namespace

absl::StatusOr<RowLayout> RowLayout::Of(const plan::Schema& schema, uint32_t page_bytes) {
  return Make(schema, {}, page_bytes);
}

absl::StatusOr<RowLayout> RowLayout::Local(const plan::Schema& schema,
                                           std::span<const CodeMeaning* const> meanings,
                                           uint32_t page_bytes) {
  NAM_CHECK(meanings.size() == schema.size());
  return Make(schema, meanings, page_bytes);
}

absl::StatusOr<RowLayout> RowLayout::Make(const plan::Schema& schema,
                                          std::span<const CodeMeaning* const> meanings, uint32_t page_bytes) {
  NAM_CHECK(std::has_single_bit(page_bytes) && page_bytes >= kLeastPageBytes && page_bytes <= kMostPageBytes);
  RowLayout layout;
  layout.page_bytes_ = page_bytes;
  layout.local_ = !meanings.empty();
  for (size_t i = 0; i < schema.size(); ++i)
    layout.AddField(schema[i], meanings.empty() ? nullptr : meanings[i]);
  uint64_t bytes = 0;
  for (const RowField& field : layout.fields_) bytes += field.width;
  bytes += (schema.size() + 7) / 8;
  if (bytes > page_bytes / 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("a row of ", schema.size(), " columns takes more than ", page_bytes / 4, " bytes"));
  }
  layout.Place(schema);
  layout.pairs_ = layout.stride_ == 8 && layout.fields_.size() == 2 && layout.fields_[0].width == 4 &&
                  layout.fields_[1].width == 4;
  layout.digest_ = layout.Digest();
  return layout;
}

void RowLayout::AddField(const plan::Slot& slot, const CodeMeaning* meaning) {
  RowField field{.type = slot.type, .physical = PhysicalOf(slot.type), .meaning = meaning};
  plan::Bounds bounds;
  switch (field.physical) {
    case Physical::kText:
      field.width = kTextBytes;
      break;
    case Physical::kTruth:
    case Physical::kInt64:
    case Physical::kInt128:
      bounds = BoundsOf(slot);
      field.width = BytesFor(bounds);
      if (field.physical == Physical::kTruth) break;
      field.physical = bounds.narrow() ? Physical::kInt64 : Physical::kInt128;
      field.base = bounds.narrow() ? static_cast<int64_t>(bounds.low) : 0;
      break;
  }
  if (meaning != nullptr) {
    if (field.physical == Physical::kInt128) field.physical = Physical::kInt64;  // like all codes' numbers
    field.width = meaning->width;
    field.base = meaning->base;
  }
  fields_.push_back(field);
  bounds_.push_back(bounds);
}

void RowLayout::Place(const plan::Schema& schema) {
  std::vector<size_t> by_width(fields_.size());
  std::iota(by_width.begin(), by_width.end(), size_t{0});
  std::stable_sort(by_width.begin(), by_width.end(),
                   [this](size_t a, size_t b) { return fields_[a].width > fields_[b].width; });
  uint32_t at = 0;
  for (const size_t i : by_width) {
    fields_[i].offset = static_cast<uint16_t>(at);
    at += fields_[i].width;
  }
  nulls_offset_ = at;
  uint32_t bits = 0;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!schema[i].nullable) continue;
    fields_[i].null_byte = static_cast<uint16_t>(nulls_offset_ + bits / 8);
    fields_[i].null_mask = static_cast<uint8_t>(1 << bits % 8);
    ++bits;
  }
  null_bytes_ = (bits + 7) / 8;
  unused_null_bits_ = bits % 8 == 0 ? 0 : static_cast<uint8_t>(0xff << bits % 8);
  stride_ = std::max<uint32_t>(nulls_offset_ + null_bytes_, 1);  // rows without columns are counted, too
  Divide();
}

void RowLayout::Divide() {
  rows_max_ = (page_bytes_ - kPageHeaderBytes) / stride_;
  rows_shift_ = static_cast<uint32_t>(std::bit_width(rows_max_ - 1));
  for (RowField& field : fields_) {
    field.stride = static_cast<uint16_t>(stride_);
    field.rows_shift = static_cast<uint8_t>(rows_shift_);
    field.page_shift = static_cast<uint8_t>(std::countr_zero(page_bytes_));
  }
}

RowLayout RowLayout::Resized(uint32_t page_bytes) const {
  NAM_CHECK(std::has_single_bit(page_bytes) && page_bytes >= page_bytes_ && page_bytes <= kMostPageBytes);
  RowLayout resized = *this;
  resized.page_bytes_ = page_bytes;
  resized.Divide();
  resized.digest_ = resized.Digest();
  return resized;
}

RowLayout RowLayout::Marked(uint32_t mark) const {
  RowLayout marked = *this;
  marked.digest_ ^= mark * 0x9e3779b1;  // odd: distinct for each mark
  return marked;
}

RowLayout RowLayout::Selected(std::span<const uint32_t> fields) const {
  RowLayout selected = *this;
  selected.fields_.clear();
  selected.bounds_.clear();
  for (const uint32_t i : fields) {
    selected.fields_.push_back(fields_[i]);
    selected.bounds_.push_back(bounds_[i]);
  }
  return selected;
}

uint32_t RowLayout::Digest() const {
  std::vector<int64_t> words = {page_bytes_, stride_, local_};
  const auto add_wide = [&words](__int128 n) {
    words.push_back(static_cast<int64_t>(n));
    words.push_back(static_cast<int64_t>(n >> 64));
  };
  for (size_t i = 0; i < fields_.size(); ++i) {
    const RowField& field = fields_[i];
    const Type& type = field.type;
    for (const int64_t word :
         {int64_t{static_cast<uint8_t>(type.kind)}, int64_t{type.scale}, int64_t{type.precision},
          int64_t{type.blank_padded}, int64_t{type.length}, int64_t{static_cast<uint8_t>(field.physical)},
          int64_t{field.width}, field.base, int64_t{field.offset}, int64_t{field.null_byte},
          int64_t{field.null_mask}}) {
      words.push_back(word);
    }
    add_wide(bounds_[i].low);
    add_wide(bounds_[i].high);
  }
  return static_cast<uint32_t>(storage::Checksum(std::as_bytes(std::span(words))));
}

uint64_t RowLayout::PageBytesFor(uint64_t row_bytes) const {
  return (kPageHeaderBytes + row_bytes + page_bytes_ - 1) / page_bytes_ * page_bytes_;
}

void RowLayout::Clear(std::byte* page, uint32_t bytes) const {
  const PageHeader header{.bytes = bytes, .text_begin = bytes, .layout = digest_};
  std::memcpy(page, &header, sizeof(header));
}

void RowLayout::Seal(std::byte* page, uint64_t attempt) const {
  NAM_CHECK(!local_, "codes mean nothing to others");
  PageHeader header = PageHeaderOf(page);
  header.attempt = attempt;
  header.checksum = ChecksumOf(page, header, stride_);
  std::memcpy(page, &header, sizeof(header));
}

absl::Status RowLayout::CheckHeader(std::span<const std::byte> page, const PageHeader& header,
                                    uint64_t attempt) const {
  if (header.magic != PageHeader::kMagic || header.bytes != page.size()) return Broken("its header");
  if (header.layout != digest_) return Broken("it is of another plan");
  if (header.attempt != attempt) return Broken("it is of another attempt");
  const uint32_t rows_max = header.bytes > page_bytes_ ? 1 : rows_max_;
  if (header.text_begin > header.bytes || header.rows > rows_max ||
      kPageHeaderBytes + header.rows * stride_ > header.text_begin) {
    return Broken("its rows and texts overlap");
  }
  if (header.checksum != ChecksumOf(page.data(), header, stride_)) return Broken("its checksum");
  return absl::OkStatus();
}

absl::Status RowLayout::CheckPage(std::span<const std::byte> page, uint64_t attempt) const {
  NAM_CHECK(!local_, "rows of codes do not come from elsewhere");
  if (!IsPageSize(page.size())) return Broken("its size");
  const PageHeader header = PageHeaderOf(page.data());
  NAM_RETURN_IF_ERROR(CheckHeader(page, header, attempt));
  bool hold = true;
  if (pairs_) {
    hold = PairsHold(page.data() + kPageHeaderBytes, header.rows);
  } else {
    for (size_t i = 0; hold && i < fields_.size(); ++i) hold = FieldHolds(page, header, i);
  }
  if (!hold) return Broken("a value is outside of its column's bounds");
  if (unused_null_bits_ == 0) return absl::OkStatus();
  const bool zero =
      AllRows(page.data() + kPageHeaderBytes, header.rows, stride_, [this](const std::byte* row) {
        return (std::to_integer<uint8_t>(row[stride_ - 1]) & unused_null_bits_) == 0;
      });
  return zero ? absl::OkStatus() : Broken("its validity bits");
}

absl::StatusOr<std::span<const std::byte>> RowLayout::TakePage(std::span<const std::byte>& pages) const {
  if (pages.size() < page_bytes_) return Broken("it is cut off");
  const uint32_t bytes = PageHeaderOf(pages.data()).bytes;
  if (!IsPageSize(bytes) || bytes > pages.size()) return Broken("its size");
  const std::span<const std::byte> page = pages.first(bytes);
  pages = pages.subspan(bytes);
  return page;
}

bool RowLayout::PairsHold(const std::byte* first, uint32_t rows) const {
  const Pair most = GreatestOfPairs(first, rows);
  const auto holds = [&](size_t i) {
    const auto bound = static_cast<uint64_t>(bounds_[i].high - bounds_[i].low);
    return (fields_[i].offset == 0 ? most.low : most.high) <= bound;
  };
  return holds(0) && holds(1);
}

bool RowLayout::FieldHolds(std::span<const std::byte> page, const PageHeader& header, size_t i) const {
  const RowField& field = fields_[i];
  const std::byte* first = page.data() + kPageHeaderBytes;
  const plan::Bounds& bounds = bounds_[i];
  const bool zeros =
      !field.nullable() || AllRows(first, header.rows, stride_, [&field](const std::byte* row) {
        static constexpr std::byte kZeros[16] = {};
        return !field.IsNull(row) || std::memcmp(row + field.offset, kZeros, field.width) == 0;
      });
  if (!zeros) return false;
  if (field.physical == Physical::kText) {
    return AllRows(first, header.rows, stride_, [&](const std::byte* row) {
      const auto offset = field.Stored<uint32_t>(row);
      const auto bytes = field.Stored<uint32_t>(row + sizeof(offset));
      return offset == 0 ? bytes == 0
                         : offset >= header.text_begin && uint64_t{offset} + bytes <= page.size();
    });
  }
  if (field.width == 16) {
    return AllRows(first, header.rows, stride_, [&](const std::byte* row) {
      const auto number = field.Stored<__int128>(row);
      const bool holds = number >= bounds.low && number <= bounds.high &&
                         (field.type.kind != TypeKind::kNumeric || IsNumericWord(number));
      return holds || field.IsNull(row);
    });
  }
  const auto most = static_cast<uint64_t>(bounds.high - bounds.low);
  return GreatestStored(first + field.offset, stride_, field.width, header.rows) <= most;
}

__int128 RowLayout::Number(const std::byte* row, size_t i) const {
  const RowField& field = fields_[i];
  return WithStored(field.width, [&](auto zero) {
    return static_cast<__int128>(field.Stored<decltype(zero)>(row)) + field.base;
  });
}

std::string_view RowLayout::Text(const std::byte* page, const std::byte* row, size_t i) const {
  const RowField& field = fields_[i];
  if (field.meaning == nullptr) return field.Text(page, row);
  return WithStored(field.width, [&](auto zero) {
    return field.meaning->Text(static_cast<uint64_t>(field.Stored<decltype(zero)>(row)));
  });
}

}  // namespace nam::execution
