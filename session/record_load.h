#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "proto/table.pb.h"
#include "session/record_access.h"

namespace nam::session {

/// As RecordAccess::BeginLoad. The rows go to a hidden table of the same shape, with indexes of its own, by
/// ordinary transactions. Finish gives its storage to the table:
///
///     load                             catalog                             other sessions
///     CREATE nam.load.5.1 ───────────▶ the member's, ends with it
///     rows, in transactions                                                read the table: empty; may write
///     it close ─────────────────────────▶ stock is closed by 5                statements on it wait
///     AwaitCommits: count, await claims ◀────────────────────────────────── commits: seen as claims, or see
///     `closed` is stock still empty? ─ no ─────▶ open; DROP nam.load.5.1: 40001 fill, loaded_at = snapshot
///     ────▶ stock has the rows; its former storage is over
///                                                                          snapshots below loaded_at: 40001
///
/// `access`: of a session of its own.
absl::StatusOr<std::unique_ptr<RecordLoad>> BeginRecordLoad(catalog::Attachment& attachment,
                                                            std::unique_ptr<RecordAccess> access,
                                                            const proto::Table& table, uint64_t rows);

}  // namespace nam::session
