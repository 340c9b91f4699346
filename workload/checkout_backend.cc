#include "workload/checkout_backend.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "txn/rsi/session.h"

namespace nam {
namespace {

constexpr int64_t kMemoryComesBackUs = 5'000'000;
constexpr int64_t kRetryUs = 100'000;

}  // namespace

absl::Status RsiBackend::MakeTables(const tpcw::CheckoutOptions& checkout,
                                    const CheckoutTableOptions& options) {
  if (options.replace) {
    NAM_RETURN_IF_ERROR(CheckOwnTables(checkout));
    for (const tpcw::TableSchema& schema : tpcw::CheckoutTables(checkout)) {
      const absl::Status dropped = attachment_.catalog().DropTable(schema.name);
      if (!dropped.ok() && !absl::IsNotFound(dropped)) return dropped;
    }
  }
  for (const tpcw::TableSchema& schema : tpcw::CheckoutTables(checkout)) {
    uint64_t rows = options.expected_orders;
    if (schema.name == tpcw::kProducts) rows = checkout.products;
    if (schema.name == tpcw::kOrderLines) rows *= tpcw::kLinesPerOrder;
    const absl::Status made = MakeTable({.name = schema.name,
                                         .row_bytes = static_cast<uint32_t>(schema.row_bytes),
                                         .key_bytes = static_cast<uint32_t>(schema.key_bytes),
                                         .versions = options.versions,
                                         .expected_rows = rows,
                                         .table = schema.table},
                                        options.replace);
    if (absl::IsAlreadyExists(made)) {
      return absl::AlreadyExistsError(
          absl::StrCat("table ", schema.name, " is there already; --replace drops checkout's tables first"));
    }
    NAM_RETURN_IF_ERROR(made);
    made_.push_back(schema.name);
  }
  return absl::OkStatus();
}

absl::Status RsiBackend::CheckOwnTables(const tpcw::CheckoutOptions& checkout) const {
  for (const tpcw::TableSchema& schema : tpcw::CheckoutTables(checkout)) {
    const auto there = attachment_.catalog().GetTable(schema.name);
    if (absl::IsNotFound(there.status())) continue;
    NAM_RETURN_IF_ERROR(there.status());
    const auto& own = schema.table.columns();
    if ((*there)->has_record() &&
        std::equal(own.begin(), own.end(), (*there)->columns().begin(), (*there)->columns().end(),
                   [](const proto::Column& a, const proto::Column& b) { return a.name() == b.name(); }))
      continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "there is another table ", schema.name,
        " than checkout's; rename or drop it in nam sql, or run checkout in another cluster (--state-dir)"));
  }
  return absl::OkStatus();
}

/// Memory of dropped tables is free once the memory servers hear of the drop.
absl::Status RsiBackend::MakeTable(const txn::RecordTableOptions& table, bool after_drop) {
  Clock& clock = attachment_.fabric().clock();
  const Deadline deadline = clock.After(after_drop ? kMemoryComesBackUs : 0);
  while (true) {
    const absl::Status made = txn::CreateTable(attachment_, table);
    if (!absl::IsResourceExhausted(made) || clock.Passed(deadline)) return made;
    clock.SleepUntil(clock.After(kRetryUs));
  }
}

void RsiBackend::DropTables() {
  for (const std::string& name : made_) attachment_.catalog().DropTable(name).IgnoreError();
  made_.clear();
}

absl::StatusOr<std::unique_ptr<txn::Session>> RsiBackend::OpenSession() {
  txn::RsiOptions options;
  // A checkout buys from its snapshot; it need not see the same client's last checkout.
  options.sees_own_commits = false;
  return txn::OpenRsiSession(tables_, options);
}

}  // namespace nam
