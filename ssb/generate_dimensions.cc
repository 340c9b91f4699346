#include <array>
#include <cstring>
#include <string_view>

#include "ssb/calendar.h"
#include "ssb/counter_random.h"
#include "ssb/generator.h"
#include "ssb/vocabulary.h"

namespace nam::ssb {
namespace {

using partitioner::ColumnBatch;

constexpr std::string_view kAddressLetters =
    "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,";
static_assert(kAddressLetters.size() == 64);

char* WriteDigits(char* at, uint64_t number, int digits) {
  for (int i = digits - 1; i >= 0; --i, number /= 10) at[i] = static_cast<char>('0' + number % 10);
  return at + digits;
}

/// `Customer#000000017`
std::string_view KeepName(ColumnBatch& batch, std::string_view prefix, uint64_t key) {
  std::array<char, 25> text;
  std::memcpy(text.data(), prefix.data(), prefix.size());
  const char* end = WriteDigits(text.data() + prefix.size(), key, 9);
  return batch.Keep({text.data(), static_cast<size_t>(end - text.data())});
}

/// 6 … 24 letters, as dbgen makes for an average of 15. Takes five words from `word` on.
std::string_view KeepAddress(ColumnBatch& batch, const RowRandom& random, uint64_t word) {
  std::array<char, 24> text;
  const uint32_t length = random.Word(word).Between(6, 24);
  for (uint32_t i = 0; i < length; i += 8) {
    RandomDigits digits = random.Word(word + 1 + i / 8);
    for (uint32_t j = i; j < std::min(length, i + 8); ++j) text[j] = kAddressLetters[digits.Below(64)];
  }
  return batch.Keep({text.data(), length});
}

/// `25-989-741-2988`: ten more than the nation's number, then three random groups.
std::string_view KeepPhone(ColumnBatch& batch, uint32_t nation, RandomDigits digits) {
  std::array<char, 15> text;
  char* at = WriteDigits(text.data(), 10 + nation, 2);
  *at++ = '-';
  at = WriteDigits(at, digits.Between(100, 999), 3);
  *at++ = '-';
  at = WriteDigits(at, digits.Between(100, 999), 3);
  *at++ = '-';
  WriteDigits(at, digits.Between(1000, 9999), 4);
  return batch.Keep({text.data(), text.size()});
}

enum Word : uint64_t { kPlace = 0, kPhone = 1, kAddress = 2 };

/// Columns 1 … 6 of customer and supplier alike: name, address, city, nation, region, phone.
/// What is left of the first word goes back for what only customers have.
RandomDigits AddPlace(ColumnBatch& batch, std::string_view prefix, uint64_t key, const RowRandom& random) {
  RandomDigits place = random.Word(kPlace);
  const uint32_t city = place.Below(static_cast<uint32_t>(Cities().size()));
  const uint32_t nation = city / kCitiesPerNation;
  batch.column(0).numbers.push_back(static_cast<int64_t>(key));
  batch.column(1).strings.push_back(KeepName(batch, prefix, key));
  batch.column(2).strings.push_back(KeepAddress(batch, random, kAddress));
  batch.column(3).strings.push_back(Cities()[city]);
  batch.column(4).strings.push_back(Nations()[nation].name);
  batch.column(5).strings.push_back(Nations()[nation].region);
  batch.column(6).strings.push_back(KeepPhone(batch, nation, random.Word(kPhone)));
  return place;
}

}  // namespace

void Generator::FillCustomer(uint64_t first, uint64_t count, ColumnBatch& batch) const {
  const uint64_t key = Key(Table::kCustomer);
  for (uint64_t row = first; row < first + count; ++row) {
    RandomDigits rest = AddPlace(batch, "Customer#", row + 1, RowRandom(key, row));
    batch.column(7).strings.push_back(
        MarketSegments()[rest.Below(static_cast<uint32_t>(MarketSegments().size()))]);
  }
  batch.set_rows(count);
}

void Generator::FillSupplier(uint64_t first, uint64_t count, ColumnBatch& batch) const {
  const uint64_t key = Key(Table::kSupplier);
  for (uint64_t row = first; row < first + count; ++row) {
    AddPlace(batch, "Supplier#", row + 1, RowRandom(key, row));
  }
  batch.set_rows(count);
}

void Generator::FillPart(uint64_t first, uint64_t count, ColumnBatch& batch) const {
  const uint64_t key = Key(Table::kPart);
  const auto colors = Colors();
  const auto color_count = static_cast<uint32_t>(colors.size());
  const auto pick = [](RandomDigits& digits, std::span<const std::string_view> words) {
    return words[digits.Below(static_cast<uint32_t>(words.size()))];
  };
  for (uint64_t row = first; row < first + count; ++row) {
    const RowRandom random(key, row);
    // Three different colours: p_color, and p_name's two. Steps around a circle never meet the start.
    RandomDigits color_digits = random.Word(0);
    const uint32_t color = color_digits.Below(color_count);
    const uint32_t step = color_digits.Between(1, color_count - 1);
    uint32_t other_step = color_digits.Between(1, color_count - 2);
    if (other_step >= step) ++other_step;
    std::array<char, 32> name;
    const std::string_view a = colors[(color + step) % color_count];
    const std::string_view b = colors[(color + other_step) % color_count];
    std::memcpy(name.data(), a.data(), a.size());
    name[a.size()] = ' ';
    std::memcpy(name.data() + a.size() + 1, b.data(), b.size());

    RandomDigits digits = random.Word(1);
    const uint32_t brand = digits.Below(static_cast<uint32_t>(Brands().size()));
    batch.column(0).numbers.push_back(static_cast<int64_t>(row + 1));
    batch.column(1).strings.push_back(batch.Keep({name.data(), a.size() + 1 + b.size()}));
    batch.column(2).strings.push_back(Manufacturers()[brand / 200]);
    batch.column(3).strings.push_back(Categories()[brand / 40]);
    batch.column(4).strings.push_back(Brands()[brand]);
    batch.column(5).strings.push_back(colors[color]);
    batch.column(6).strings.push_back(pick(digits, PartTypes()));
    batch.column(7).numbers.push_back(digits.Between(1, 50));
    batch.column(8).strings.push_back(pick(digits, Containers()));
  }
  batch.set_rows(count);
}

void Generator::FillDate(uint64_t first, uint64_t count, ColumnBatch& batch) const {
  for (const CalendarDay& day : Calendar().subspan(first, count)) {
    size_t column = 0;
    const auto number = [&](int64_t value) { batch.column(column++).numbers.push_back(value); };
    const auto text = [&](std::string_view value) { batch.column(column++).strings.push_back(value); };
    number(day.date_key);
    text(day.date);
    text(day.day_of_week);
    text(day.month);
    number(day.year);
    number(day.year_month_num);
    text(day.year_month);
    number(day.day_num_in_week);
    number(day.day_num_in_month);
    number(day.day_num_in_year);
    number(day.month_num_in_year);
    number(day.week_num_in_year);
    text(day.selling_season);
    number(day.last_day_in_week);
    number(day.last_day_in_month);
    number(day.holiday);
    number(day.weekday);
  }
  batch.set_rows(count);
}

}  // namespace nam::ssb
