#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/client.h"

namespace nam::cli {

/// The record tables that are lost with the transaction state: all that there are. NOT_FOUND without a
/// transaction state, FAILED_PRECONDITION while it can be read.
absl::StatusOr<std::vector<std::string>> FindLostRecordTables(catalog::Client& catalog);
/// Drops them, and the state, which the next transaction makes anew.
absl::Status DropLostRecordTables(catalog::Client& catalog);

}  // namespace nam::cli
