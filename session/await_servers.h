#pragma once

#include <atomic>

#include "absl/status/status.h"
#include "catalog/attachment.h"
#include "session/catalog_tables.h"

namespace nam::session {

/// Waits until no memory server that the running statement's tables need is suspect, for two seconds at most:
/// then the error of a missing server (missing_server_errors.h), for a buried one at once. CANCELLED once
/// `cancel` is set.
absl::Status AwaitServers(catalog::Attachment& attachment, CatalogTables& tables,
                          const std::atomic<bool>& cancel);

}  // namespace nam::session
