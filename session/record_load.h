#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "catalog/attachment.h"
#include "proto/table.pb.h"
#include "session/record_access.h"

namespace nam::session {

/// As RecordAccess::BeginLoad. The rows go to a hidden table of the same shape, with indexes of its own, by
/// ordinary transactions. FinishRecordLoads gives its storage to the table:
///
///     load                             catalog                             other sessions
///     CREATE nam.load.5.1 ───────────▶ the member's, ends with it
///     rows, in transactions                                                read the table; may write
///     close it ─────────────────────▶ stock is closed by nam.load.5.1      statements on it wait
///     AwaitCommits: count, await claims ◀────────────────────────────────── commits: seen as claims, or see
///     has stock the rows that the                                          `closed`
///     load replaces? ─ no ──────────▶ open; DROP nam.load.5.1: 40001
///     fill, loaded_at = snapshot ───▶ stock has the rows; its former storage is over
///                                                                          snapshots below loaded_at: 40001
///
/// `access`: of a session of its own.
absl::StatusOr<std::unique_ptr<RecordLoad>> BeginRecordLoad(catalog::Attachment& attachment,
                                                            std::unique_ptr<RecordAccess> access,
                                                            const proto::Table& table, uint64_t rows,
                                                            std::optional<RowsDigest> replaced);

/// As RecordAccess::FinishLoads: each step for all loads, then all tables are filled by one change of the
/// catalog.
absl::Status FinishRecordLoads(catalog::Attachment& attachment,
                               std::span<const std::unique_ptr<RecordLoad>> loads);

}  // namespace nam::session
