#include "session/session_lost.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "catalog/client.h"
#include "types/sql_error.h"

namespace nam::session {

namespace {

std::string StateOfLost(const absl::Status& error) {
  LogWarning(absl::StrCat("a statement failed when the membership was over: ", std::string(error.message())));
  const std::optional<SqlError> sql_error = SqlErrorOf(error);
  return sql_error.has_value() ? sql_error->sqlstate : sqlstate::kConnectionFailure;
}

}  // namespace

absl::Status SessionLost(const absl::Status& error, bool in_transaction) {
  const std::string state = StateOfLost(error);
  if (state == sqlstate::kOutcomeUnknown) {
    return ToStatus({.message = "the session was lost: this client stalled for longer than its lease, and "
                                "whether the transaction was committed is unknown",
                     .hint = "a new session is open; check whether the changes are there",
                     .sqlstate = state});
  }
  return ToStatus(
      {.message = "the session was lost: this client stalled for longer than its lease",
       .hint =
           in_transaction
               ? "nothing of the transaction has happened, and it is over: ROLLBACK, and run all of it again"
               : "nothing of the statement has happened, and a new session is open: run it again",
       .sqlstate = state == sqlstate::kSerializationFailure ? state : sqlstate::kConnectionFailure});
}

absl::Status SessionMayBeLost(const absl::Status& error) {
  LogWarning(absl::StrCat("a statement failed when the lease was over and the catalog did not answer: ",
                          std::string(error.message())));
  return ToStatus({.message =
                       "the session may be lost: this client stalled for longer than its lease, and the "
                       "catalog does not answer",
                   .hint = "run the statement again",
                   .sqlstate = sqlstate::kConnectionFailure});
}

absl::Status TransactionLost() {
  return ToStatus({.message = "the session was lost: this client stalled for longer than its lease; the "
                              "transaction that was open is over",
                   .hint = "nothing of it has happened; run it again",
                   .sqlstate = sqlstate::kConnectionFailure});
}

absl::Status SessionClosed(const absl::Status& error) {
  if (StateOfLost(error) == sqlstate::kOutcomeUnknown) {
    return ToStatus({.message = "the cluster is being stopped, and whether the transaction was committed is "
                                "unknown",
                     .hint = "check whether the changes are there when it runs again",
                     .sqlstate = sqlstate::kOutcomeUnknown});
  }
  return ToStatus({.message = "the session was ended, since the cluster is being stopped",
                   .hint = "nothing of the statement, or of the transaction that was open, has happened: run "
                           "it again when the cluster runs again",
                   .sqlstate = sqlstate::kAdminShutdown});
}

absl::Status SessionNotReopened(const absl::Status& joined) {
  if (catalog::IsClosedToClients(joined)) {
    return ToStatus(
        {.message = "the cluster is being stopped, and takes no statements",
         .hint = "nothing of the statement has happened: run it again when the cluster runs again",
         .sqlstate = sqlstate::kAdminShutdown});
  }
  return ToStatus({.message = absl::StrCat("the session was lost, and cannot be opened again: ",
                                           std::string(joined.message())),
                   .hint = "run the statement again",
                   .sqlstate = sqlstate::kCannotConnect});
}

bool MayComeOfLoss(const absl::Status& error) {
  const std::optional<SqlError> sql_error = SqlErrorOf(error);
  const std::string state = sql_error.has_value() ? sql_error->sqlstate : sqlstate::kConnectionError;
  const std::string state_class = state.substr(0, 2);
  return state_class == "08" || state_class == "57" || state_class == "58" || state_class == "XX";
}

bool IsDamage(const absl::Status& error) {
  return absl::IsDataLoss(error) && !SqlErrorOf(error).has_value();
}

}  // namespace nam::session
