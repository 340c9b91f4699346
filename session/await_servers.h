#pragma once

#include <atomic>

#include "absl/status/status.h"
#include "catalog/attachment.h"
#include "session/catalog_tables.h"

namespace nam::session {

/// Waits, for two seconds at most, until no memory server that the running statement's tables need is
/// suspect. Otherwise returns the error of the missing server (missing_server_errors.h); at once if it is
/// buried. CANCELLED once `cancel` is set.
absl::Status AwaitServers(catalog::Attachment& attachment, CatalogTables& tables,
                          const std::atomic<bool>& cancel);

}  // namespace nam::session
