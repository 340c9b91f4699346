#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// COPY … TO: runs the statement's query, and writes its rows as they come, to the file or to the client. A
/// file that may be replaced (csv/destination.h) is there once it has all rows: after an error, or a client's
/// end, it is as it was before. CANCELLED while a pipe stands still, as the thread's Interruption says.
absl::StatusOr<ResultSet> CopyTo(const sql::CopyToStatement& statement, RowReceiver& client,
                                 const std::function<absl::StatusOr<ResultSet>(RowReceiver& rows)>& run);

}  // namespace nam::session
