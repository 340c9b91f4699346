#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "partitioner/record_row.h"
#include "plan/logical.h"
#include "session/foreign_keys.h"
#include "session/record_access.h"
#include "session/session.h"
#include "sql/bound_query.h"

namespace nam::session {

/// Of an error of an INSERT that concerns one of its rows: how many rows it has taken behind that one.
std::optional<uint64_t> RowsBehind(const absl::Status& error);

/// A query's rows, as the open transaction sees them.
using RunQuery = std::function<absl::StatusOr<ResultSet>(plan::logical::Query query)>;

/// INSERT, UPDATE and DELETE in the open transaction. A statement finds all of its rows before it changes
/// one, so it never sees its own changes; unique indexes and foreign keys are checked after all changes.
/// After an error some of the changes are made: the transaction must end. Belongs to the session's thread.
class RecordChanges {
 public:
  /// Borrows both.
  RecordChanges(RecordAccess& access, const std::atomic<bool>& cancelled)
      : access_(access), cancelled_(cancelled) {}

  absl::StatusOr<ResultSet> Insert(const sql::InsertStatement& statement);
  /// Returns a row, with a value for each of the statement's columns; nullopt: there are no more.
  using NextRow = std::function<absl::StatusOr<std::optional<std::vector<Value>>>()>;
  /// Runs the query of an INSERT … SELECT in the open transaction. Copies of the result share what is left of
  /// the rows, which need the transaction no more.
  static absl::StatusOr<NextRow> RowsOf(const sql::InsertStatement& statement, const RunQuery& run_query);
  /// Inserts the rows of `next`. An error of one row tells which (RowsBehind).
  absl::StatusOr<ResultSet> Insert(const sql::InsertStatement& statement, const NextRow& next);
  absl::StatusOr<ResultSet> Update(const sql::UpdateStatement& statement, const RunQuery& run_query);
  absl::StatusOr<ResultSet> Delete(const sql::DeleteStatement& statement, const RunQuery& run_query);
  /// How the rows of a change without a query are found.
  static sql::AccessPath PathOf(const proto::Table& table, const std::vector<plan::Expr>& conjuncts,
                                uint64_t snapshot);

 private:
  using Row = std::vector<Value>;
  /// A row of UPDATE and DELETE with its values from the source: values to assign, then those for RETURNING.
  struct Found {
    std::string key;
    Row row;
    Row rest;
  };
  class Inserting;
  class Returned;

  using OnFound = std::function<absl::Status(Found found)>;
  /// Finds each row once.
  template <typename Change>
  absl::Status FindAll(const Change& change, const RunQuery& run_query, const OnFound& on_found);
  absl::Status FindByPath(const proto::Table& table, const std::vector<plan::Expr>& conjuncts,
                          const OnFound& on_found);
  /// Their keys differ. `taken`, if there is one: of a row that exists already.
  absl::Status InsertRows(const proto::Table& table, std::span<const std::string> rows,
                          size_t* taken = nullptr);
  absl::Status MoveRows(const proto::Table& table, std::vector<std::string> before,
                        std::span<const std::string> rows);
  absl::StatusOr<Row> ChangedRow(const sql::UpdateStatement& statement, const Found& found, Row& returned);
  absl::StatusOr<Value> DefaultOf(const proto::Table& table, int column, const sql::ChangeValue& otherwise);
  /// `wrong`: the number of the row, if it is known.
  template <typename Rows>
  absl::Status CheckUnique(const proto::Table& table, const Rows& rows,
                           const std::function<bool(uint32_t column)>& written, size_t* wrong = nullptr);
  absl::Status CheckReferences(const sql::BoundTable& table, std::span<const RowChange> changes);
  /// Another row with the key (ConflictAction::keys) of `row`; nullopt if there is none, or the key has NULL
  /// in it. `but_itself`: excludes the row with the primary key of `row`.
  absl::StatusOr<std::optional<std::string>> FindKey(const proto::Table& table, int key,
                                                     const std::string& row, bool but_itself);

  RecordAccess& access_;
  const std::atomic<bool>& cancelled_;
};

}  // namespace nam::session
