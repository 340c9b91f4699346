#include "txn/check/anomaly_report.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace nam::txn {
namespace {

constexpr size_t kOperationsShown = 16;

std::string RecordName(uint64_t record) {
  return absl::StrFormat("%d/%d", record >> 56, record & ((uint64_t{1} << 56) - 1));
}

std::string ValueName(uint64_t value) {
  return value == kNoValue ? "nothing"
                           : absl::StrFormat("%d.%d", value >> 40, value & ((uint64_t{1} << 40) - 1));
}

std::string OperationText(const Operation& operation) {
  const std::string record = RecordName(operation.record);
  switch (operation.kind) {
    case OperationKind::kRead: {
      std::string text = absl::StrCat("read ", record, " = ", ValueName(operation.value));
      if (operation.version != kVersionNotTold) absl::StrAppend(&text, " of ", operation.version);
      return text;
    }
    case OperationKind::kInsert:
      return absl::StrCat("insert ", record, " := ", ValueName(operation.value));
    case OperationKind::kUpdate:
      return absl::StrCat("update ", record, " := ", ValueName(operation.value));
    case OperationKind::kDelete:
      return absl::StrCat("delete ", record);
    case OperationKind::kLock:
      return absl::StrCat("lock ", record, " = ", ValueName(operation.value));
  }
  return "?";
}

std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kUnknown:
      return "outcome unknown";
    case Outcome::kCommitted:
      return "committed";
    case Outcome::kAborted:
      return "aborted";
  }
  return "?";
}

/// Puts the operations on `record` first: a transaction can have thousands.
std::string OperationsText(const TransactionRecord& transaction, uint64_t record) {
  std::string text;
  size_t shown = 0;
  for (const bool about_it : {true, false}) {
    for (const Operation& operation : transaction.operations) {
      if ((operation.record == record) != about_it) continue;
      if (shown++ < kOperationsShown)
        absl::StrAppend(&text, shown == 1 ? "" : ", ", OperationText(operation));
    }
  }
  if (shown > kOperationsShown) absl::StrAppend(&text, " and ", shown - kOperationsShown, " more");
  return text;
}

std::string TransactionText(const HistoryIndex& index, uint32_t number, const TransactionRecord& transaction,
                            uint64_t record) {
  const size_t session = index.SessionOf(number);
  std::string text = absl::StrFormat("  session %d, transaction %d: snapshot %d", session,
                                     number - index.TransactionsOf(session).first, transaction.snapshot);
  if (transaction.commit != 0) absl::StrAppend(&text, ", commit ", transaction.commit);
  absl::StrAppend(&text, ", ", std::string(OutcomeName(transaction.outcome)), ": ",
                  OperationsText(transaction, record), "\n");
  return text;
}

}  // namespace

std::string_view AnomalyName(AnomalyKind kind) {
  switch (kind) {
    case AnomalyKind::kDirtyRead:
      return "dirty read";
    case AnomalyKind::kAbortedRead:
      return "aborted read";
    case AnomalyKind::kIntermediateRead:
      return "intermediate read";
    case AnomalyKind::kTornValue:
      return "torn value";
    case AnomalyKind::kStaleRead:
      return "stale read";
    case AnomalyKind::kFracturedRead:
      return "fractured read";
    case AnomalyKind::kLongFork:
      return "long fork";
    case AnomalyKind::kCircularInformation:
      return "circular information flow";
    case AnomalyKind::kLostUpdate:
      return "lost update";
    case AnomalyKind::kLostWrite:
      return "lost write";
    case AnomalyKind::kDuplicateKey:
      return "duplicate key";
    case AnomalyKind::kMissingRow:
      return "write of a missing row";
    case AnomalyKind::kLockIgnored:
      return "lock ignored";
    case AnomalyKind::kWrongTimestamp:
      return "wrong timestamp";
    case AnomalyKind::kSessionWentBack:
      return "session went back";
    case AnomalyKind::kOwnCommitNotSeen:
      return "own commit not seen";
    case AnomalyKind::kValueUsedTwice:
      return "value used twice";
  }
  return "unknown";
}

bool CheckReport::Has(AnomalyKind kind) const {
  return std::any_of(anomalies.begin(), anomalies.end(), [&](const Anomaly& a) { return a.kind == kind; });
}

std::string CheckReport::ToString() const {
  std::string text =
      absl::StrFormat("%d transactions, %d committed (%d concluded), %d operations: ", transactions,
                      committed, concluded, operations);
  if (ok()) return text + "snapshot isolation\n";
  absl::StrAppend(&text, anomalies.size(), more ? " anomalies and more\n" : " anomalies\n");
  for (const Anomaly& anomaly : anomalies) text += anomaly.text;
  return text;
}

void AnomalyReport::Add(AnomalyKind kind, uint64_t record, std::vector<uint32_t> transactions) {
  if (report_.anomalies.size() >= options_.anomalies_max) {
    report_.more = true;
    return;
  }
  report_.anomalies.push_back({kind, record, std::move(transactions), {}});
}

CheckReport AnomalyReport::Finish() {
  report_.transactions = index_.transactions();
  report_.operations = index_.operations();
  for (uint32_t i = 0; i < index_.transactions(); ++i) {
    report_.committed += index_.committed(i);
    report_.concluded += index_.concluded(i);
  }
  if (report_.anomalies.empty()) return std::move(report_);

  absl::flat_hash_map<uint32_t, TransactionRecord> shown;
  for (const Anomaly& anomaly : report_.anomalies) {
    for (const uint32_t number : anomaly.transactions) shown[number];
  }
  index_.ForEachTransaction([&](uint32_t number, const TransactionRecord& content) {
    const auto at = shown.find(number);
    if (at != shown.end()) at->second = content;
  });
  for (Anomaly& anomaly : report_.anomalies) {
    anomaly.text = std::string(AnomalyName(anomaly.kind));
    if (anomaly.record != kNoRecord) absl::StrAppend(&anomaly.text, " of ", RecordName(anomaly.record));
    anomaly.text += ":\n";
    for (const uint32_t number : anomaly.transactions) {
      anomaly.text += TransactionText(index_, number, shown[number], anomaly.record);
    }
  }
  return std::move(report_);
}

}  // namespace nam::txn
