#pragma once

#include <optional>
#include <string>

#include "sql/tokens.h"

/// DuckDB's file names in place of table names in a FROM: `SELECT … FROM 'people.csv'`, and `FROM
/// 'people.csv'` for SELECT * of it, alone or after CREATE TABLE … AS. PostgreSQL's grammar has neither.
namespace nam::sql {

/// Replaces file names with table names, and a FROM that begins a query with TABLE. All else stays in place.
/// Returns the text itself if nothing is replaced.
std::string WithFilesAsTables(const std::string& text);

/// The file name where the parser has found a table's.
std::optional<std::string> FileNameAt(const SqlText& text, int position);

}  // namespace nam::sql
