#pragma once

#include <optional>
#include <string>

#include "sql/tokens.h"

/// DuckDB's names of files where a FROM has names of tables: `SELECT … FROM 'people.csv'`, and `FROM
/// 'people.csv'` for SELECT * of it, alone or behind CREATE TABLE … AS. PostgreSQL's grammar has neither.
namespace nam::sql {

/// The statement with names of tables in the place of those of files, and TABLE in that of a FROM that begins
/// a query. All else stays where it is. The text itself if nothing is replaced.
std::string WithFilesAsTables(const std::string& text);

/// The file's name that stands where the parser has found a table's.
std::optional<std::string> FileNameAt(const SqlText& text, int position);

}  // namespace nam::sql
