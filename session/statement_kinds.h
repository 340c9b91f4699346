#pragma once

#include <variant>

#include "sql/bound_query.h"

namespace nam::session {

/// Whether it ends a transaction that was lost.
inline bool IsRollback(const sql::Statement& statement) {
  const auto* const ends = std::get_if<sql::TransactionStatement>(&statement);
  return ends != nullptr && ends->kind == sql::TransactionStatement::Kind::kRollback;
}

/// Whether the statement needs the memory servers of its tables. False for statements that remove tables, or
/// that touch no rows: they run without these servers.
inline bool NeedsMemoryServers(const sql::Statement& statement) {
  return !std::holds_alternative<sql::DropTableStatement>(statement) &&
         !std::holds_alternative<sql::DropIndexStatement>(statement) &&
         !std::holds_alternative<sql::CreateSchemaStatement>(statement) &&
         !std::holds_alternative<sql::CreateTableStatement>(statement) &&
         !std::holds_alternative<sql::TruncateStatement>(statement) &&
         !std::holds_alternative<sql::TransactionStatement>(statement);
}

}  // namespace nam::session
