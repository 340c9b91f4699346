#include "tpch/order_rows.h"

#include "dataset/line_counts.h"
#include "dataset/row_text.h"
#include "dataset/vocabulary.h"
#include "tpch/text_pool.h"
#include "types/date.h"

namespace nam::tpch {
namespace {

using dataset::RandomDigits;
using dataset::RowRandom;
using partitioner::ColumnBatch;

static_assert(DaysFromCivil({1992, 1, 1}) == kStartDate);
static_assert(DaysFromCivil({1995, 6, 17}) == kCurrentDate);
static_assert(DaysFromCivil({1998, 12, 31}) == kStartDate + kOrderDays - 1 + 151);

// The random words of an order: its lines take three each.
enum OrderWord : uint64_t { kHead = 0, kText = 1, kLines = 2 };
constexpr uint64_t kWordsPerLine = 3;

constexpr std::array<std::string_view, 4> kInstructions = {"DELIVER IN PERSON", "COLLECT COD", "NONE",
                                                           "TAKE BACK RETURN"};

struct Head {
  int64_t cust_key;
  int64_t date;
  std::string_view priority;
  uint64_t clerk;
};

Head MakeHead(const RowRandom& random, const ReferredRows& referred) {
  RandomDigits digits = random.Word(kHead);
  const auto customers = static_cast<uint32_t>(referred.customers);
  Head head;
  head.cust_key = dataset::OrderingCustomer(digits.Between(1, customers), customers);
  head.date = kStartDate + digits.Below(kOrderDays);
  head.priority =
      dataset::OrderPriorities()[digits.Below(static_cast<uint32_t>(dataset::OrderPriorities().size()))];
  head.clerk = digits.Between(1, static_cast<uint32_t>(referred.clerks));
  return head;
}

/// A line's part of the total price, in cents, truncated as in dbgen.
int64_t TotalOf(int64_t extended_price, int64_t discount, int64_t tax) {
  return extended_price * (100 - discount) / 100 * (100 + tax) / 100;
}

}  // namespace

OrderRows::Line OrderRows::MakeLine(const RowRandom& random, int64_t order_date, uint32_t line) const {
  RandomDigits keys = random.Word(kLines + kWordsPerLine * line);
  RandomDigits dates = random.Word(kLines + kWordsPerLine * line + 1);
  const auto modes = dataset::ShipModes();
  const uint32_t part = keys.Between(1, static_cast<uint32_t>(referred_.parts));
  Line out;
  out.part_key = part;
  out.supp_key = static_cast<int64_t>(SupplierOf(part, keys.Below(kSuppliersPerPart), referred_.suppliers));
  out.quantity = keys.Between(1, 50);
  out.extended_price = out.quantity * dataset::PartPrice(part);
  out.discount = keys.Between(0, 10);
  out.tax = keys.Between(0, 8);
  out.ship_date = order_date + dates.Between(1, 121);
  out.commit_date = order_date + dates.Between(30, 90);
  out.receipt_date = out.ship_date + dates.Between(1, 30);
  out.shipped = out.ship_date <= kCurrentDate;
  const bool returned = dates.Below(2) == 0;
  out.return_flag = out.receipt_date > kCurrentDate ? "N" : returned ? "R" : "A";
  out.ship_instruct = kInstructions[dates.Below(kInstructions.size())];
  out.ship_mode = modes[dates.Below(static_cast<uint32_t>(modes.size()))];
  return out;
}

void OrderRows::FillOrders(uint64_t first, uint64_t count, ColumnBatch& batch) const {
  dataset::LineCounts line_counts(first);
  for (uint64_t number = first; number < first + count; ++number) {
    const RowRandom random = RandomOf(number);
    const Head head = MakeHead(random, referred_);
    const uint32_t lines = line_counts.Next();
    uint32_t shipped = 0;
    int64_t total = 0;
    for (uint32_t i = 0; i < lines; ++i) {
      const Line line = MakeLine(random, head.date, i);
      shipped += line.shipped ? 1 : 0;
      total += TotalOf(line.extended_price, line.discount, line.tax);
    }
    batch.column(0).numbers.push_back(KeyOf(number));
    batch.column(1).numbers.push_back(head.cust_key);
    batch.column(2).strings.push_back(shipped == lines ? "F" : shipped == 0 ? "O" : "P");
    batch.column(3).numbers.push_back(total);
    batch.column(4).numbers.push_back(head.date);
    batch.column(5).strings.push_back(head.priority);
    batch.column(6).strings.push_back(dataset::KeepName(batch, "Clerk#", head.clerk));
    batch.column(7).numbers.push_back(0);
    batch.column(8).strings.push_back(PoolText(random.Word(kText), 19, 78));
  }
  batch.set_rows(count);
}

void OrderRows::FillLineitem(uint64_t first, uint64_t count, ColumnBatch& batch) const {
  dataset::LineCounts line_counts(first);
  size_t rows = 0;
  for (uint64_t number = first; number < first + count; ++number) {
    const RowRandom random = RandomOf(number);
    const int64_t date = MakeHead(random, referred_).date;
    const int64_t key = KeyOf(number);
    const uint32_t lines = line_counts.Next();
    for (uint32_t i = 0; i < lines; ++i) {
      const Line line = MakeLine(random, date, i);
      size_t column = 0;
      for (const int64_t value : {key, line.part_key, line.supp_key, int64_t{i} + 1, line.quantity * 100,
                                  line.extended_price, line.discount, line.tax})
        batch.column(column++).numbers.push_back(value);
      batch.column(8).strings.push_back(line.return_flag);
      batch.column(9).strings.push_back(line.shipped ? "F" : "O");
      batch.column(10).numbers.push_back(line.ship_date);
      batch.column(11).numbers.push_back(line.commit_date);
      batch.column(12).numbers.push_back(line.receipt_date);
      batch.column(13).strings.push_back(line.ship_instruct);
      batch.column(14).strings.push_back(line.ship_mode);
      batch.column(15).strings.push_back(PoolText(random.Word(kLines + kWordsPerLine * i + 2), 10, 43));
    }
    rows += lines;
  }
  batch.set_rows(rows);
}

}  // namespace nam::tpch
