#pragma once

#include <memory>

#include "catalog/attachment.h"
#include "session/record_statements.h"

namespace nam::session {

/// Record tables by RSI. Becomes a client of the cluster's transactions with the first statement that needs
/// it; after a session is lost the next transaction begins with a new one. The attachment outlives it.
std::unique_ptr<RecordAccess> MakeRecordEngine(catalog::Attachment& attachment);

/// Makes NextNumber return at least `count` from now on in engines of this process, and no less in others.
/// For a column that has handed out no number yet. Returns the first number that none had taken; with a count
/// of 0 nothing changes.
absl::StatusOr<uint64_t> SkipNumbers(catalog::Attachment& attachment, const proto::Table& table, int column,
                                     uint64_t count);

}  // namespace nam::session
