#include "bench/ssb_loop.h"

#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "dataset/load.h"
#include "dataset/vocabulary.h"
#include "ssb/vocabulary.h"

namespace nam::bench {
namespace {

constexpr int64_t kFirstDateKey = 19'920'101, kLastDateKey = 19'981'231;
constexpr int kFirstYear = 1992, kYears = 7;
constexpr size_t kNations = 25, kBrands = 1000;

using Codes = std::unordered_map<std::string_view, int>;

template <typename Words>
Codes Enumerate(const Words& words) {
  Codes codes;
  for (const auto& word : words) codes.emplace(word, static_cast<int>(codes.size()));
  return codes;
}

const Codes& NationCodes() {
  static const Codes codes = [] {
    std::vector<std::string_view> names;
    for (const dataset::Nation& nation : dataset::Nations()) names.push_back(nation.name);
    return Enumerate(names);
  }();
  return codes;
}

const Codes& RegionCodes() {
  static const Codes codes = Enumerate(dataset::Regions());
  return codes;
}

const Codes& ManufacturerCodes() {
  static const Codes codes = Enumerate(ssb::Manufacturers());
  return codes;
}

const Codes& CategoryCodes() {
  static const Codes codes = Enumerate(ssb::Categories());
  return codes;
}

const Codes& BrandCodes() {
  static const Codes codes = Enumerate(ssb::Brands());
  return codes;
}

/// A column of a batch by name.
const partitioner::ColumnBatch::Column& Column(const partitioner::ColumnBatch& batch, ssb::Table table,
                                               std::string_view name) {
  const auto& columns = ssb::Tables()[table].schema.columns;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return batch.column(i);
  }
  NAM_CHECK(false, "no such column");
}

/// into[key] = code of the text, for every row.
template <typename T>
void Encode(const partitioner::ColumnBatch::Column& keys, const partitioner::ColumnBatch::Column& texts,
            const Codes& codes, std::vector<T>& into) {
  for (size_t i = 0; i < keys.numbers.size(); ++i) {
    into[static_cast<size_t>(keys.numbers[i])] = static_cast<T>(codes.at(texts.strings[i]));
  }
}

template <typename T>
void Narrow(const partitioner::ColumnBatch::Column& from, size_t at, std::vector<T>& into) {
  std::transform(from.numbers.begin(), from.numbers.end(), into.begin() + static_cast<std::ptrdiff_t>(at),
                 [](int64_t number) { return static_cast<T>(number); });
}

Value Year(size_t year) {
  return Value::Integer(static_cast<int64_t>(year) + kFirstYear);
}

Value NationName(size_t nation) {
  return Value::String(std::string(dataset::Nations()[nation].name));
}

// Uses the compiler's own SIMD for this processor; resolution at load time disturbs sanitizers.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define NAM_FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", "default")))
#else
#define NAM_FOR_EACH_PROCESSOR
#endif

/// Branch-free and through local pointers: in any other form GCC 12 does not vectorize it, which costs a
/// factor of five.
NAM_FOR_EACH_PROCESSOR int64_t SumDiscounts(const int16_t* day, const int8_t* discount,
                                            const int8_t* quantity, const int32_t* extended_price,
                                            size_t first, size_t last, int32_t first_day, int32_t end_day) {
  int64_t sum = 0;
  for (size_t i = first; i < last; ++i) {
    const int32_t d = day[i], percent = discount[i], q = quantity[i];
    const int32_t wanted = (d >= first_day) & (d < end_day) & (percent >= 1) & (percent <= 3) & (q < 25);
    sum += int64_t{extended_price[i] * percent * wanted};
  }
  return sum;
}

}  // namespace

bool SsbLoop::Has(std::string_view query) {
  return query == "Q1.1" || query == "Q2.1" || query == "Q3.1" || query == "Q4.1";
}

absl::StatusOr<std::unique_ptr<SsbLoop>> SsbLoop::Load(fabric::Fabric& fabric,
                                                       const dataset::Generator& generator,
                                                       const dataset::WorkOptions& work) {
  NAM_CHECK(Fits(generator.options().scale_factor));
  std::unique_ptr<SsbLoop> loop(new SsbLoop(fabric));
  const auto by_key = [&](ssb::Table table) { return static_cast<size_t>(generator.Rows(table)) + 1; };
  for (auto* column : {&loop->customer_nation_, &loop->customer_region_})
    column->resize(by_key(ssb::Table::kCustomer));
  for (auto* column : {&loop->supplier_nation_, &loop->supplier_region_})
    column->resize(by_key(ssb::Table::kSupplier));
  for (auto* column : {&loop->part_manufacturer_, &loop->part_category_})
    column->resize(by_key(ssb::Table::kPart));
  loop->part_brand_.resize(by_key(ssb::Table::kPart));
  loop->day_of_key_.assign(kLastDateKey - kFirstDateKey + 1, 0);
  loop->rows_ = generator.Rows(ssb::Table::kLineorder);
  for (auto* column :
       {&loop->customer_, &loop->part_, &loop->extended_price_, &loop->revenue_, &loop->supply_cost_}) {
    column->resize(loop->rows_);
  }
  loop->supplier_.resize(loop->rows_);
  loop->day_.resize(loop->rows_);
  loop->quantity_.resize(loop->rows_);
  loop->discount_.resize(loop->rows_);
  for (const ssb::Table table : ssb::kAllTables) NAM_RETURN_IF_ERROR(loop->LoadTable(generator, table, work));
  return loop;
}

absl::Status SsbLoop::LoadTable(const dataset::Generator& generator, ssb::Table table,
                                const dataset::WorkOptions& work) {
  dataset::WorkOptions options = work;
  // Days are numbered in order of arrival. Rows of other dimensions have places of their own.
  if (table == ssb::Table::kDate) options.threads = 1;
  const auto sink = [&](const Batch& batch) { return Take(table, batch); };
  return dataset::LoadGenerated(fabric_, generator, table, sink, options).status();
}

absl::Status SsbLoop::Take(ssb::Table table, const Batch& batch) {
  switch (table) {
    case ssb::Table::kCustomer:
      TakeCustomer(batch);
      break;
    case ssb::Table::kSupplier:
      TakeSupplier(batch);
      break;
    case ssb::Table::kPart:
      TakePart(batch);
      break;
    case ssb::Table::kDate:
      TakeDate(batch);
      break;
    case ssb::Table::kLineorder:
      TakeLineorder(batch);
      break;
  }
  return absl::OkStatus();
}

void SsbLoop::TakeCustomer(const Batch& batch) {
  const auto column = [&](const char* name) { return Column(batch, ssb::Table::kCustomer, name); };
  Encode(column("c_custkey"), column("c_nation"), NationCodes(), customer_nation_);
  Encode(column("c_custkey"), column("c_region"), RegionCodes(), customer_region_);
}

void SsbLoop::TakeSupplier(const Batch& batch) {
  const auto column = [&](const char* name) { return Column(batch, ssb::Table::kSupplier, name); };
  Encode(column("s_suppkey"), column("s_nation"), NationCodes(), supplier_nation_);
  Encode(column("s_suppkey"), column("s_region"), RegionCodes(), supplier_region_);
}

void SsbLoop::TakePart(const Batch& batch) {
  const auto column = [&](const char* name) { return Column(batch, ssb::Table::kPart, name); };
  Encode(column("p_partkey"), column("p_mfgr"), ManufacturerCodes(), part_manufacturer_);
  Encode(column("p_partkey"), column("p_category"), CategoryCodes(), part_category_);
  Encode(column("p_partkey"), column("p_brand1"), BrandCodes(), part_brand_);
}

void SsbLoop::TakeDate(const Batch& batch) {
  const auto& keys = Column(batch, ssb::Table::kDate, "d_datekey").numbers;
  const auto& years = Column(batch, ssb::Table::kDate, "d_year").numbers;
  for (size_t i = 0; i < keys.size(); ++i) {
    NAM_CHECK(keys[i] >= kFirstDateKey && keys[i] <= kLastDateKey);
    day_of_key_[static_cast<size_t>(keys[i] - kFirstDateKey)] = static_cast<int16_t>(year_.size());
    year_.push_back(static_cast<int8_t>(years[i] - kFirstYear));
  }
}

int16_t SsbLoop::DayOf(int64_t date_key) const {
  return day_of_key_[static_cast<size_t>(date_key - kFirstDateKey)];
}

void SsbLoop::TakeLineorder(const Batch& batch) {
  const auto column = [&](const char* name) -> const Batch::Column& {
    return Column(batch, ssb::Table::kLineorder, name);
  };
  const size_t at = rows_taken_.fetch_add(batch.rows());
  NAM_CHECK(at + batch.rows() <= rows_);
  Narrow(column("lo_custkey"), at, customer_);
  Narrow(column("lo_partkey"), at, part_);
  Narrow(column("lo_suppkey"), at, supplier_);
  Narrow(column("lo_quantity"), at, quantity_);
  Narrow(column("lo_discount"), at, discount_);
  Narrow(column("lo_extendedprice"), at, extended_price_);
  Narrow(column("lo_revenue"), at, revenue_);
  Narrow(column("lo_supplycost"), at, supply_cost_);
  const auto& dates = column("lo_orderdate").numbers;
  for (size_t i = 0; i < dates.size(); ++i) day_[at + i] = DayOf(dates[i]);
}

template <typename Body>
SsbLoop::Sums SsbLoop::InParallel(int threads, size_t groups, const Body& body) const {
  const size_t shares = static_cast<size_t>(std::max(1, threads));
  std::vector<Sums> sums(shares);
  std::vector<std::unique_ptr<fabric::Thread>> running;
  for (size_t i = 0; i < shares; ++i) {
    running.push_back(fabric_.StartThread("ssb-loop", [&, i] {
      Sums own(groups);  // on the thread that uses it, so that threads share no cache line
      body(rows_ * i / shares, rows_ * (i + 1) / shares, own);
      sums[i] = std::move(own);
    }));
  }
  running.clear();  // joins
  Sums total(groups);
  for (const Sums& share : sums) {
    for (size_t group = 0; group < groups; ++group) total[group] += share[group];
  }
  return total;
}

SsbLoop::Sums SsbLoop::RunQ11(int threads) const {
  // Days are in order, so a year is a range.
  const auto year = std::equal_range(year_.begin(), year_.end(), static_cast<int8_t>(1993 - kFirstYear));
  const auto first_day = static_cast<int32_t>(year.first - year_.begin());
  const auto end_day = static_cast<int32_t>(year.second - year_.begin());
  return InParallel(threads, 1, [&](size_t first, size_t last, Sums& sums) {
    sums[0] = SumDiscounts(day_.data(), discount_.data(), quantity_.data(), extended_price_.data(), first,
                           last, first_day, end_day);
  });
}

SsbLoop::Sums SsbLoop::RunQ21(int threads) const {
  const int category = CategoryCodes().at("MFGR#12"), region = RegionCodes().at("AMERICA");
  return InParallel(threads, kYears * kBrands, [&](size_t first, size_t last, Sums& sums) {
    for (size_t i = first; i < last; ++i) {
      if (part_category_[part_[i]] != category || supplier_region_[supplier_[i]] != region) continue;
      sums[year_[day_[i]] * kBrands + part_brand_[part_[i]]] += revenue_[i];
    }
  });
}

SsbLoop::Sums SsbLoop::RunQ31(int threads) const {
  const int region = RegionCodes().at("ASIA"), last_year = 1997 - kFirstYear;
  return InParallel(threads, kNations * kNations * kYears, [&](size_t first, size_t last, Sums& sums) {
    for (size_t i = first; i < last; ++i) {
      if (supplier_region_[supplier_[i]] != region || customer_region_[customer_[i]] != region) continue;
      const int year = year_[day_[i]];
      if (year > last_year) continue;
      const size_t nations = customer_nation_[customer_[i]] * kNations + supplier_nation_[supplier_[i]];
      sums[nations * kYears + year] += revenue_[i];
    }
  });
}

SsbLoop::Sums SsbLoop::RunQ41(int threads) const {
  const int region = RegionCodes().at("AMERICA");
  const int first_maker = ManufacturerCodes().at("MFGR#1"), second_maker = ManufacturerCodes().at("MFGR#2");
  return InParallel(threads, kYears * kNations, [&](size_t first, size_t last, Sums& sums) {
    for (size_t i = first; i < last; ++i) {
      if (supplier_region_[supplier_[i]] != region || customer_region_[customer_[i]] != region) continue;
      const int maker = part_manufacturer_[part_[i]];
      if (maker != first_maker && maker != second_maker) continue;
      sums[year_[day_[i]] * kNations + customer_nation_[customer_[i]]] += revenue_[i] - supply_cost_[i];
    }
  });
}

SsbLoop::Answer SsbLoop::Run(std::string_view query, int threads) const {
  NAM_CHECK(Has(query));
  const int64_t start_ns = fabric_.clock().NowNs();
  const Sums sums = query == "Q1.1"   ? RunQ11(threads)
                    : query == "Q2.1" ? RunQ21(threads)
                    : query == "Q3.1" ? RunQ31(threads)
                                      : RunQ41(threads);
  Answer answer;
  for (size_t group = 0; group < sums.size(); ++group) {
    // Every row of the benchmark adds a positive value: revenue and profit.
    if (sums[group] == 0) continue;
    const Value sum = Value::Integer(sums[group]);
    if (query == "Q1.1") answer.rows.push_back({sum});
    if (query == "Q2.1") {
      const std::string brand(ssb::Brands()[group % kBrands]);
      answer.rows.push_back({sum, Year(group / kBrands), Value::String(brand)});
    }
    if (query == "Q3.1") {
      const size_t nations = group / kYears;
      answer.rows.push_back(
          {NationName(nations / kNations), NationName(nations % kNations), Year(group % kYears), sum});
    }
    if (query == "Q4.1") answer.rows.push_back({Year(group / kNations), NationName(group % kNations), sum});
  }
  if (query == "Q1.1" && answer.rows.empty()) answer.rows.push_back({Value::Null(Type::Integer())});
  answer.elapsed_ms = static_cast<double>(fabric_.clock().NowNs() - start_ns) / 1e6;
  return answer;
}

}  // namespace nam::bench
