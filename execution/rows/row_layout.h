#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/column.h"
#include "execution/row_field.h"
#include "plan/schema.h"
#include "storage/row_bytes.h"

/// Rows at rest: join builds, groups, sorted runs, partitions, messages and results have this one layout. A
/// page means the same in memory, in a message and in scratch memory: it holds no pointer. Little-endian.
///
///     0        32                                                          bytes
///     ├ header ┼ row 0 ┼ row 1 ┼ … ┼ row n-1 ┤      free      ├ … text ┼ text ┤
///
///     row:  ├ fields by falling width, packed, no padding ┼ a validity bit for each field that may be NULL ┤
///     text: ├ u32 offset in the page ┼ u32 bytes ┤; offset 0: an empty one
///
/// A tuple of two 4-byte fields takes 8 bytes. Equal values have equal bytes, except texts: NULL fields and
/// unused bits are 0.
///
/// A row and its texts lie in one page. One that fits no page of the layout's size has a *long page* of its
/// own: as many such pages as it takes, in one piece, with one header and one row. A text's offset counts
/// from the header in any case, so whoever reads texts need not know.
///
///     0        32                page_bytes           2·page_bytes         3·page_bytes
///     ├ header ┼ row 0 ┼ free ┼ … text ┼ text … ┼ … text ┼ text … ┼ … text ┤          `bytes` = 3·page_bytes
///
/// In scratch memory and in messages it goes in pieces, in order, with none between them.
namespace nam::execution {

struct PageHeader {
  static constexpr uint32_t kMagic = 0x504d414e;  // "NAMP"
  uint32_t magic = kMagic;
  uint32_t bytes = 0;  // the page's: the layout's page_bytes, or for a long page a multiple of them
  uint32_t rows = 0;
  uint32_t text_begin = 0;  // offset of the lowest byte of text; equals `bytes` if there is none
  uint32_t layout = 0;      // RowLayout::digest: rejects pages of other plans
  uint32_t checksum = 0;    // over header, rows and texts once the page leaves the process; 0 before
  uint64_t attempt = 0;     // of the stage; unique in the session. Pages of others are discarded
};
static_assert(sizeof(PageHeader) == kPageHeaderBytes);
static_assert(std::endian::native == std::endian::little, "pages are as they lie in memory");

/// Copies the header of a page, which may lie at any address.
inline PageHeader PageHeaderOf(const std::byte* page) {
  PageHeader header;
  std::memcpy(&header, page, sizeof(header));
  return header;
}

/// The places of a schema's fields. It follows from the schema alone, so all servers agree. Immutable.
class RowLayout {
 public:
  /// The least is a message that a network card sends at its full rate.
  static constexpr uint32_t kLeastPageBytes = 2 << 10, kSmallPageBytes = 16 << 10, kMostPageBytes = 64 << 10;
  static_assert(kPageHeaderBytes + storage::kRowBytesMax + storage::kColumnsMax / 8 <= kMostPageBytes,
                "any row of a record table fits such a page");
  /// The most bytes of a long page: a row of 63 of the longest texts.
  static constexpr uint32_t kLongPageBytesMax = 1u << 30;
  static_assert(kPageHeaderBytes + storage::kLongRowBytesMax + storage::kColumnsMax / 8 + kMostPageBytes <=
                    kLongPageBytesMax,
                "any row of a columnar table fits such a page");

  /// Numbers take the bytes that their bounds need; dates and timestamps take those of their type, others
  /// without bounds 16. INVALID_ARGUMENT if a row without its texts takes more than a quarter of a page, or
  /// if vectors have no form for a type's values. `page_bytes` is a power of two from kLeastPageBytes to
  /// kMostPageBytes.
  static absl::StatusOr<RowLayout> Of(const plan::Schema& schema, uint32_t page_bytes);
  /// For builds that never leave the process: where meanings[i] is set, the field keeps the column's codes in
  /// their width, so that groups and tests after a join use codes. The meanings outlive the layout.
  static absl::StatusOr<RowLayout> Local(const plan::Schema& schema,
                                         std::span<const CodeMeaning* const> meanings, uint32_t page_bytes);

  /// The same rows on pages of another size, which is not smaller.
  RowLayout Resized(uint32_t page_bytes) const;
  /// The same rows on pages with another digest than this layout's, and than other marks'.
  RowLayout Marked(uint32_t mark) const;
  /// These fields of the same pages, as fields 0, 1, …: what is written here is written there.
  RowLayout Selected(std::span<const uint32_t> fields) const;

  uint32_t stride() const { return stride_; }
  uint32_t page_bytes() const { return page_bytes_; }
  /// The most rows of a page; fewer fit if they have texts.
  uint32_t rows_max() const { return rows_max_; }
  /// A row's number in a RowTable is page << shift | place in the page.
  uint32_t rows_shift() const { return rows_shift_; }
  /// The most pages of a RowTable: no row of theirs has the number kNullRow.
  uint64_t pages_max() const { return (uint64_t{1} << 32 >> rows_shift_) - 1; }
  const RowField& field(size_t i) const { return fields_[i]; }
  size_t fields() const { return fields_.size(); }
  /// The bounds of the field's numbers; unknown for texts and doubles.
  const plan::Bounds& bounds(size_t i) const { return bounds_[i]; }
  uint32_t digest() const { return digest_; }
  bool local() const { return local_; }
  /// The offset of the validity bits in a row, and their bytes: up to the row's end.
  uint32_t nulls_offset() const { return nulls_offset_; }
  uint32_t null_bytes() const { return null_bytes_; }

  /// The bytes of a page for a row of so many bytes, with its texts: page_bytes(), or a long page's.
  uint64_t PageBytesFor(uint64_t row_bytes) const;
  /// Whether a page may have so many bytes.
  bool IsPageSize(uint64_t bytes) const {
    return bytes == page_bytes_ ||
           (bytes > page_bytes_ && bytes % page_bytes_ == 0 && bytes <= kLongPageBytesMax);
  }

  /// Makes this memory, aligned to 8 bytes, a page without rows.
  void Clear(std::byte* page) const { Clear(page, page_bytes_); }
  /// The same for a page of another size, which is long.
  void Clear(std::byte* page, uint32_t bytes) const;
  /// Prepares a page to leave the process: writes attempt and checksum. Not for local layouts.
  void Seal(std::byte* page, uint64_t attempt) const;
  /// Checks a page from elsewhere, in memory that does not change any more: DATA_LOSS unless its header is of
  /// this layout and of `attempt`, its checksum holds, all rows lie below the text, every text lies in the
  /// page's text, every number within its bounds, and NULL fields are 0. A page that passes is safe to read,
  /// whatever its bytes. Pages that were written here and sealed pass.
  absl::Status CheckPage(std::span<const std::byte> page, uint64_t attempt) const;
  /// Takes the first page off consecutive ones, of this layout or another with pages of its size. DATA_LOSS
  /// if they end within it. It is not checked.
  absl::StatusOr<std::span<const std::byte>> TakePage(std::span<const std::byte>& pages) const;

  bool IsNull(const std::byte* row, size_t i) const { return fields_[i].IsNull(row); }
  /// The number in a field that is not NULL, of a page that was checked or written here. Decodes codes.
  __int128 Number(const std::byte* row, size_t i) const;
  std::string_view Text(const std::byte* page, const std::byte* row, size_t i) const;

 private:
  RowLayout() = default;
  static absl::StatusOr<RowLayout> Make(const plan::Schema& schema,
                                        std::span<const CodeMeaning* const> meanings, uint32_t page_bytes);
  void AddField(const plan::Slot& slot, const CodeMeaning* meaning);
  void Place(const plan::Schema& schema);
  /// Derives values from the stride and the page size.
  void Divide();
  uint32_t Digest() const;
  absl::Status CheckHeader(std::span<const std::byte> page, const PageHeader& header, uint64_t attempt) const;
  bool PairsHold(const std::byte* first, uint32_t rows) const;
  bool FieldHolds(std::span<const std::byte> page, const PageHeader& header, size_t i) const;

  std::vector<RowField> fields_;
  std::vector<plan::Bounds> bounds_;
  uint32_t stride_ = 0;
  uint32_t page_bytes_ = 0;
  uint32_t rows_max_ = 0;
  uint32_t rows_shift_ = 0;
  uint32_t nulls_offset_ = 0;
  uint32_t null_bytes_ = 0;
  uint8_t unused_null_bits_ = 0;  // in the last of those bytes
  uint32_t digest_ = 0;
  bool local_ = false;
  bool pairs_ = false;  // rows are two numbers of 4 bytes alone
};

}  // namespace nam::execution
