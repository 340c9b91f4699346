#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/client.h"

namespace nam::cli {

/// The record tables that are lost with the transaction state: all tables. NOT_FOUND without a transaction
/// state, FAILED_PRECONDITION while it can be read.
absl::StatusOr<std::vector<std::string>> FindLostRecordTables(catalog::Client& catalog);
/// Drops them, and the state; the next transaction creates a new one.
absl::Status DropLostRecordTables(catalog::Client& catalog);

}  // namespace nam::cli
