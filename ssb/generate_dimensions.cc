#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "dataset/counter_random.h"
#include "dataset/row_text.h"
#include "dataset/vocabulary.h"
#include "ssb/calendar.h"
#include "ssb/generator.h"
#include "ssb/vocabulary.h"

namespace nam::ssb {
namespace {

using partitioner::ColumnBatch;

using dataset::Colors;
using dataset::KeepAddress;
using dataset::KeepName;
using dataset::KeepPhone;
using dataset::MarketSegments;
using dataset::Nations;
using dataset::RandomDigits;
using dataset::RowRandom;

// As in dbgen, for an average of 15.
constexpr uint32_t kAddressLengthMin = 6, kAddressLengthMax = 24;

enum Word : uint64_t { kPlace = 0, kPhone = 1, kAddress = 2 };

/// Adds columns 1 … 6, which customer and supplier share: name, address, city, nation, region, phone. Returns
/// the rest of the first word, for the customers' own column.
RandomDigits AddPlace(ColumnBatch& batch, std::string_view prefix, uint64_t key, const RowRandom& random) {
  RandomDigits place = random.Word(kPlace);
  const uint32_t city = place.Below(static_cast<uint32_t>(Cities().size()));
  const uint32_t nation = city / kCitiesPerNation;
  batch.column(0).numbers.push_back(static_cast<int64_t>(key));
  batch.column(1).strings.push_back(KeepName(batch, prefix, key));
  batch.column(2).strings.push_back(
      KeepAddress(batch, random, kAddress, kAddressLengthMin, kAddressLengthMax));
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
    // Three different colours: p_color and two of p_name. Steps around a circle never return to the start.
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
    batch.column(6).strings.push_back(pick(digits, dataset::PartTypes()));
    batch.column(7).numbers.push_back(digits.Between(1, 50));
    batch.column(8).strings.push_back(pick(digits, dataset::Containers()));
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
