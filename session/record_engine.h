#pragma once

#include <memory>

#include "catalog/attachment.h"
#include "session/record_statements.h"

namespace nam::session {

/// Record tables by RSI. Becomes a client of the cluster's transactions with the first statement that needs
/// it; after the loss of a session the next transaction begins with a new one. The attachment outlives it.
std::unique_ptr<RecordAccess> MakeRecordEngine(catalog::Attachment& attachment);

/// NextNumber of engines of this process has at least `count` from now on, and others hand out none below it.
/// Of a column that nobody has had a number of yet.
absl::Status SkipNumbers(catalog::Attachment& attachment, const proto::Table& table, int column,
                         uint64_t count);

}  // namespace nam::session
