#include "txn/session.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

constexpr char kReasonPayload[] = "nam/abort-reason";
constexpr char kTooLargePayload[] = "nam/transaction-too-large";
constexpr char kTooManyPayload[] = "nam/transactions-at-once";

}  // namespace

std::string_view AbortReasonName(AbortReason reason) {
  switch (reason) {
    case AbortReason::kWriteWrite:
      return "write-write conflict";
    case AbortReason::kSnapshotTooOld:
      return "snapshot too old";
    case AbortReason::kUniqueKey:
      return "unique key";
    case AbortReason::kLockOfDeadClient:
      return "locked by a client that is gone";
    case AbortReason::kConnectionLost:
      return "connection lost";
    case AbortReason::kSkipped:
      return "commit passed over";
    case AbortReason::kLockTimeout:
      return "lock timeout";
    case AbortReason::kForeignKey:
      return "foreign key";
  }
  return "unknown";
}

absl::Status AbortStatus(AbortReason reason, std::string_view what) {
  const absl::StatusCode code = reason == AbortReason::kUniqueKey    ? absl::StatusCode::kAlreadyExists
                                : reason == AbortReason::kForeignKey ? absl::StatusCode::kFailedPrecondition
                                                                     : absl::StatusCode::kAborted;
  absl::Status status(code, std::string(AbortReasonName(reason)) + ": " + std::string(what));
  status.SetPayload(kReasonPayload, absl::Cord(absl::StrCat(static_cast<int>(reason))));
  return status;
}

std::optional<AbortReason> AbortReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kReasonPayload);
  if (!payload.has_value()) return std::nullopt;
  const std::string text(*payload);
  if (text.size() != 1 || text[0] < '0' || text[0] >= static_cast<char>('0' + kAbortReasons)) {
    return std::nullopt;
  }
  return static_cast<AbortReason>(text[0] - '0');
}

absl::Status TooLargeStatus(std::string_view what) {
  absl::Status status = absl::ResourceExhaustedError(std::string(what));
  status.SetPayload(kTooLargePayload, absl::Cord("1"));
  return status;
}

bool IsTooLarge(const absl::Status& status) {
  return status.GetPayload(kTooLargePayload).has_value();
}

absl::Status NoClientFreeStatus(std::string_view what) {
  absl::Status status = absl::ResourceExhaustedError(std::string(what));
  status.SetPayload(kTooManyPayload, absl::Cord("1"));
  return status;
}

bool IsNoClientFree(const absl::Status& status) {
  return status.GetPayload(kTooManyPayload).has_value();
}

absl::Status Session::BeginAndRead(std::span<Lookup> lookups) {
  NAM_RETURN_IF_ERROR(Begin());
  return Read(lookups);
}

absl::Status Session::Scan(TableHandle, const RowVisitor&) {
  return absl::UnimplementedError("this protocol scans no tables");
}

absl::Status Session::VisitWrites(TableHandle, const WriteVisitor&) {
  return absl::UnimplementedError("this protocol does not show its writes");
}

absl::Status Session::ScanIndex(TableHandle, AllocationId, std::span<const std::byte>,
                                std::span<const std::byte>, const RowVisitor&) {
  return absl::UnimplementedError("this protocol has no ordered indexes");
}

size_t Session::Mark() const {
  return 0;
}

absl::Status Session::RollBackTo(size_t) {
  return absl::UnimplementedError("this protocol has no savepoints");
}

absl::StatusOr<uint64_t> Session::NewestCommit() {
  return absl::UnimplementedError("this protocol does not tell its timestamps");
}

absl::StatusOr<uint64_t> Session::AwaitCommits() {
  return absl::UnimplementedError("this protocol has no ordered indexes");
}

absl::StatusOr<uint64_t> Session::FillIndex(TableHandle, AllocationId) {
  return absl::UnimplementedError("this protocol has no ordered indexes");
}

absl::StatusOr<VacuumCounts> Session::Vacuum(TableHandle) {
  return absl::UnimplementedError("this protocol keeps nothing that could go");
}

}  // namespace nam::txn
