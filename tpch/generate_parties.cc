// Suppliers, customers, parts, and the suppliers of parts.
#include <array>
#include <cstring>
#include <string_view>

#include "absl/strings/str_format.h"
#include "dataset/composed_words.h"
#include "dataset/counter_random.h"
#include "dataset/order_keys.h"
#include "dataset/row_text.h"
#include "dataset/vocabulary.h"
#include "tpch/generator.h"
#include "tpch/part_suppliers.h"
#include "tpch/text_pool.h"

namespace nam::tpch {
namespace {

using dataset::RandomDigits;
using dataset::RowRandom;
using partitioner::ColumnBatch;

constexpr uint32_t kAddressLengthMin = 10, kAddressLengthMax = 40;
constexpr uint32_t kNations = 25;

// The random words of a supplier's or customer's row. The address takes six.
enum PartyWord : uint64_t { kPlace = 0, kPhone = 1, kComment = 2, kOverlay = 3, kAddress = 4 };

/// -999.99 … 9,999.99
int64_t Balance(RandomDigits& digits) {
  return static_cast<int64_t>(digits.Below(99'999 + 999'999 + 1)) - 99'999;
}

/// Adds columns 0 … 5, which supplier and customer share: key, name, address, nation, phone, balance. Returns
/// the rest of the first word, for the customers' own column.
RandomDigits AddParty(ColumnBatch& batch, std::string_view prefix, uint64_t key, const RowRandom& random) {
  RandomDigits place = random.Word(kPlace);
  const uint32_t nation = place.Below(kNations);
  batch.column(0).numbers.push_back(static_cast<int64_t>(key));
  batch.column(1).strings.push_back(dataset::KeepName(batch, prefix, key));
  batch.column(2).strings.push_back(
      dataset::KeepAddress(batch, random, kAddress, kAddressLengthMin, kAddressLengthMax));
  batch.column(3).numbers.push_back(nation);
  batch.column(4).strings.push_back(dataset::KeepPhone(batch, nation, random.Word(kPhone)));
  batch.column(5).numbers.push_back(Balance(place));
  return place;
}

// In every 2,000 suppliers, one has a complaint and another a recommendation: five each of 10,000.
constexpr uint64_t kRemarkPeriod = 2'000;
constexpr std::string_view kRemarkCustomer = "Customer", kComplaints = "Complaints",
                           kRecommends = "Recommends";

/// The customers' remark on a supplier; empty for most.
std::string_view RemarkOn(uint64_t key, uint64_t row) {
  RandomDigits digits = RowRandom(~key, row / kRemarkPeriod).Word(0);
  const auto complaint = digits.Below(kRemarkPeriod);
  const auto recommendation = (complaint + digits.Between(1, kRemarkPeriod - 1)) % kRemarkPeriod;
  if (row % kRemarkPeriod == complaint) return kComplaints;
  if (row % kRemarkPeriod == recommendation) return kRecommends;
  return {};
}

/// `text` with `Customer` and, after it, `remark` at random positions.
std::string_view KeepRemark(ColumnBatch& batch, std::string_view text, std::string_view remark,
                            RandomDigits digits) {
  std::array<char, 100> out;
  std::memcpy(out.data(), text.data(), text.size());
  const auto room = static_cast<uint32_t>(text.size() - kRemarkCustomer.size() - remark.size());
  const uint32_t between = digits.Between(0, room);
  const uint32_t at = digits.Between(0, room - between);
  std::memcpy(out.data() + at, kRemarkCustomer.data(), kRemarkCustomer.size());
  std::memcpy(out.data() + at + kRemarkCustomer.size() + between, remark.data(), remark.size());
  return batch.Keep({out.data(), text.size()});
}

std::span<const std::string_view> Manufacturers() {
  static const auto& words = dataset::ComposedWords::Make([](dataset::ComposedWords& out) {
    for (int m = 1; m <= 5; ++m) out.Add(absl::StrFormat("Manufacturer#%d", m));
  });
  return words.words();
}

/// Five per manufacturer, in its order.
std::span<const std::string_view> Brands() {
  static const auto& words = dataset::ComposedWords::Make([](dataset::ComposedWords& out) {
    for (int m = 1; m <= 5; ++m) {
      for (int n = 1; n <= 5; ++n) out.Add(absl::StrFormat("Brand#%d%d", m, n));
    }
  });
  return words.words();
}

/// Five different colours, separated by blanks.
std::string_view KeepPartName(ColumnBatch& batch, RandomDigits digits) {
  constexpr size_t kWords = 5, kColors = 92;
  static const std::span<const std::string_view> colors = dataset::Colors();
  std::array<uint8_t, kColors> order;
  for (size_t i = 0; i < kColors; ++i) order[i] = static_cast<uint8_t>(i);
  std::array<char, 64> name;
  size_t length = 0;
  for (size_t i = 0; i < kWords; ++i) {
    std::swap(order[i], order[i + digits.Below(static_cast<uint32_t>(kColors - i))]);
    const std::string_view color = colors[order[i]];
    if (i > 0) name[length++] = ' ';
    std::memcpy(name.data() + length, color.data(), color.size());
    length += color.size();
  }
  return batch.Keep({name.data(), length});
}

std::string_view Pick(RandomDigits& digits, std::span<const std::string_view> words) {
  return words[digits.Below(static_cast<uint32_t>(words.size()))];
}

}  // namespace

void Generator::FillSupplier(uint64_t first, uint64_t count, ColumnBatch& batch) const {
  const uint64_t key = Key(kSupplier);
  for (uint64_t row = first; row < first + count; ++row) {
    const RowRandom random(key, row);
    AddParty(batch, "Supplier#", row + 1, random);
    const std::string_view comment = PoolText(random.Word(kComment), 25, 100);
    const std::string_view remark = RemarkOn(key, row);
    batch.column(6).strings.push_back(
        remark.empty() ? comment : KeepRemark(batch, comment, remark, random.Word(kOverlay)));
  }
  batch.set_rows(count);
}

void Generator::FillCustomer(uint64_t first, uint64_t count, ColumnBatch& batch) const {
  const uint64_t key = Key(tpch::kCustomer);
  for (uint64_t row = first; row < first + count; ++row) {
    const RowRandom random(key, row);
    RandomDigits rest = AddParty(batch, "Customer#", row + 1, random);
    batch.column(6).strings.push_back(Pick(rest, dataset::MarketSegments()));
    batch.column(7).strings.push_back(PoolText(random.Word(kComment), 29, 116));
  }
  batch.set_rows(count);
}

void Generator::FillPart(uint64_t first, uint64_t count, ColumnBatch& batch) const {
  const uint64_t key = Key(kPart);
  for (uint64_t row = first; row < first + count; ++row) {
    const RowRandom random(key, row);
    RandomDigits digits = random.Word(0);
    const uint32_t brand = digits.Below(static_cast<uint32_t>(Brands().size()));
    batch.column(0).numbers.push_back(static_cast<int64_t>(row + 1));
    batch.column(1).strings.push_back(KeepPartName(batch, random.Word(1)));
    batch.column(2).strings.push_back(Manufacturers()[brand / 5]);
    batch.column(3).strings.push_back(Brands()[brand]);
    batch.column(4).strings.push_back(Pick(digits, dataset::PartTypes()));
    batch.column(5).numbers.push_back(digits.Between(1, 50));
    batch.column(6).strings.push_back(Pick(digits, dataset::Containers()));
    batch.column(7).numbers.push_back(dataset::PartPrice(row + 1));
    batch.column(8).strings.push_back(PoolText(random.Word(2), 5, 22));
  }
  batch.set_rows(count);
}

void Generator::FillPartsupp(uint64_t first, uint64_t count, ColumnBatch& batch) const {
  const uint64_t key = Key(kPartsupp), suppliers = Units(kSupplier);
  for (uint64_t part = first + 1; part <= first + count; ++part) {
    for (uint32_t i = 0; i < kSuppliersPerPart; ++i) {
      const RowRandom random(key, part * kSuppliersPerPart + i);
      RandomDigits digits = random.Word(0);
      batch.column(0).numbers.push_back(static_cast<int64_t>(part));
      batch.column(1).numbers.push_back(static_cast<int64_t>(SupplierOf(part, i, suppliers)));
      batch.column(2).numbers.push_back(digits.Between(1, 9'999));
      batch.column(3).numbers.push_back(digits.Between(100, 100'000));
      batch.column(4).strings.push_back(PoolText(random.Word(1), 49, 198));
    }
  }
  batch.set_rows(count * kSuppliersPerPart);
}

}  // namespace nam::tpch
