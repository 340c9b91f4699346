#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// COPY … TO: runs the statement's query, and writes its rows as they come, to the file or to the client. A
/// file that may be replaced (csv/destination.h) appears once it has all rows: after an error, or if the
/// client ends, it is unchanged. CANCELLED while a pipe is stalled, if the thread's Interruption says so.
absl::StatusOr<ResultSet> CopyTo(const sql::CopyToStatement& statement, RowReceiver& client,
                                 const std::function<absl::StatusOr<ResultSet>(RowReceiver& rows)>& run);

}  // namespace nam::session
