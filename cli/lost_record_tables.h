#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "catalog/client.h"

namespace nam::cli {

/// The record tables that are lost with the transaction state: all tables; if there was no transaction yet,
/// those without a living memory server. NOT_FOUND if there is neither a state nor such a table,
/// FAILED_PRECONDITION while the state can be read.
absl::StatusOr<std::vector<std::string>> FindLostRecordTables(catalog::Client& catalog);
/// Drops them, and the state; the next transaction creates a new one.
absl::Status DropLostRecordTables(catalog::Client& catalog, const std::vector<std::string>& tables);

}  // namespace nam::cli
