#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "csv/byte_source.h"
#include "csv/dialect.h"
#include "csv/sniffer.h"
#include "plan/aggregate.h"
#include "plan/expression.h"
#include "plan/logical.h"
#include "proto/table.pb.h"
#include "sql/statement_time.h"

namespace nam::sql {

struct BoundTable {
  std::string alias;  // its name in the query
  std::shared_ptr<const proto::Table> table;
  // For a table that is changed:
  std::vector<std::shared_ptr<const proto::Table>> parents;   // of record.foreign_keys
  std::vector<std::shared_ptr<const proto::Table>> children;  // of record.referenced_by; null: dropped since
};

struct OutputColumn {
  std::string name;
  plan::Expr expr;
};

/// A record table whose rows a SELECT … FOR UPDATE locks: the rows behind its result.
struct RowLock {
  std::shared_ptr<const proto::Table> table;
  int first = -1;     // the result's column where the rows' primary key begins
  bool waits = true;  // false: NOWAIT
};

/// A query. A session that runs it takes the tree.
struct TreeStatement {
  std::shared_ptr<plan::logical::Query> tree;
  /// The client sees the result's columns before those of the first lock. Empty: all.
  std::vector<RowLock> locks;
};
/// DROP TABLE, DROP VIEW, DROP SCHEMA.
struct DropTableStatement {
  enum class Kind : uint8_t { kTable, kView, kSchema };
  std::string table;  // or view; for a schema its own name
  bool if_exists = false;
  Kind kind = Kind::kTable;
  bool cascade = false;
  int position = -1;  // the name's
};
/// ALTER TABLE, and other statements that rename a table or a view.
struct AlterTableStatement {
  /// Null if nothing is to be done: IF EXISTS without the table, or SET SCHEMA to its own.
  std::shared_ptr<const proto::Table> table;
  std::vector<std::string> notices;
  std::string command;  // as reported to the client
  std::string to;       // new name; empty: keeps the old one
  /// Otherwise the changed table. With a source it is made of those rows, else the rows stay where they are.
  proto::Table changed;
  std::shared_ptr<plan::logical::Query> source;
  int position = -1;  // the name's
};
struct CreateSchemaStatement {
  std::string name;
  bool if_not_exists = false;
};
struct CreateViewStatement {
  proto::Table view;
  std::vector<proto::ViewSource> sources;
  bool replace = false;
  int position = -1;  // the name's
};
/// ANALYZE
struct AnalyzedTable {
  std::shared_ptr<const proto::Table> table;
  std::vector<int> columns;
};
struct AnalyzeStatement {
  std::vector<AnalyzedTable> tables;
};
/// SET name = value, …; RESET name; RESET ALL. Names are as written, in lower case unless quoted.
struct SetStatement {
  std::string name;                 // empty: all
  std::vector<std::string> values;  // none: the default
  bool local = false;               // for the open transaction
  bool reset = false;               // written as RESET
  int position = -1;                // the name's
  int value_position = -1;          // the first value's
};

/// SHOW name, SHOW ALL
struct ShowStatement {
  std::string name;  // empty: all
  int position = -1;
};

/// CREATE TABLE. Without `table.record` it is columnar: an empty one has its partitions, its order and the
/// size of its blocks.
struct CreateTableStatement {
  proto::Table table;  // name, columns, primary key, checks, record: as the catalog takes them
  std::vector<proto::RecordPart> indexes;  // for UNIQUE constraints and foreign keys; without extents
  bool if_not_exists = false;
  bool storage_by_default = false;  // neither WITH nor nam.default_storage says what kind of table it is
  int position = -1;                // the name's
};
struct CopyStatement;
/// CREATE TABLE … AS: a columnar table of a query's rows.
struct CreateTableAsStatement {
  CreateTableStatement create;
  std::shared_ptr<plan::logical::Query> source;  // its columns are those of the table; a session takes it
  std::shared_ptr<CopyStatement> file;  // instead, for SELECT * FROM read_csv(…): the files with its rows
  bool with_data = true;
};
/// TRUNCATE
struct TruncateStatement {
  BoundTable table;
};
/// VACUUM. Of a columnar table: merges its chains to as few as one load makes. Of a record table: takes away
/// what no snapshot needs.
struct VacuumStatement {
  std::shared_ptr<const proto::Table> table;
};
struct CreateIndexStatement {
  std::shared_ptr<const proto::Table> table;
  proto::RecordPart index;  // without extents
  bool named = true;        // false: its name comes from its columns, with a number if it is taken
  bool if_not_exists = false;
  int position = -1;  // of the table's name
};

struct DropIndexStatement {
  std::vector<std::string> names;  // its possible names, one for each schema of the search path
  bool if_exists = false;
  int position = -1;  // the name's
};

/// Refuses a row if the condition is false for it.
struct BoundCheck {
  std::string name;
  plan::Expr condition;  // over columns of table 0
};
/// Changes to rows of one record table. Values are of their column's kind and scale; Assign
/// (partitioner/assigned_value.h) checks whether they fit. A missing value is the column's default: a value
/// without columns, or nullopt if the column is numbered and takes its next number.
using ChangeValue = std::optional<plan::Expr>;
using ChangeSource = std::shared_ptr<plan::logical::Query>;

struct ColumnAssignment {
  int column = -1;
  ChangeValue value;
};
/// ON CONFLICT. Expressions are over columns of table 0, the existing row, and of table 1, the row to insert.
struct ConflictAction {
  static constexpr int kPrimaryKey = -1;
  std::vector<int> keys;  // keys to look up: kPrimaryKey, or a unique index RecordStorage.parts[i]
  bool update = false;    // otherwise the existing row stays as it is
  std::vector<ColumnAssignment> assignments;
  std::vector<plan::Expr> conjuncts;
};
/// Into a columnar table: without checks, conflict and returning.
struct InsertStatement {
  BoundTable table;
  std::vector<int> columns;                    // columns with values
  std::vector<std::vector<ChangeValue>> rows;  // constants, one for each of `columns`
  ChangeSource source;                         // instead of rows: its columns are those values
  std::vector<ChangeValue> defaults;           // for each column of the table
  std::vector<BoundCheck> checks;
  std::optional<ConflictAction> conflict;
  std::vector<OutputColumn> returning;  // over the new row as table 0
};
/// COPY … FROM: rows of files, or of standard input, become rows of a table.
struct CopyStatement {
  /// Without rows. For a columnar table it has the table and the columns only.
  InsertStatement insert;
  std::vector<plan::Expr> values;  // for insert.columns, over the row's texts as columns of table 0
  std::string path;                // or a pattern; empty: standard input
  /// Opens that. A session sets it.
  std::function<std::unique_ptr<csv::ByteSource>()> input;
  csv::Dialect dialect;
  bool match_header = false;  // the first row's names must be those of the columns
  bool skip_errors = false;   // skips rows that cannot be read
  std::string rejects;        // the file for those rows; empty: none
  uint64_t batch_rows = 0;    // per transaction, into a record table; 0: all
  /// Of files in a query: where their rows go, in which forms the fields of each column are, and the column
  /// that gets the file's path; -1: none does. Otherwise empty.
  std::vector<csv::SniffedFile> files;
  std::vector<csv::FieldForm> forms;
  int file_name_column = -1;
  int position = -1;  // of the table's name
};
/// COPY … TO: writes a query's rows to a file, or to the client.
struct CopyToStatement {
  std::shared_ptr<plan::logical::Query> source;  // a session takes it
  std::string path;                              // empty: to the client
  csv::Dialect dialect;
  std::vector<bool> force_quote;  // by column: puts values that are not NULL in quotes
};
struct UpdateStatement {
  BoundTable table;
  std::vector<plan::Expr> conjuncts;  // over columns of table 0; all must be true
  std::vector<ColumnAssignment> assignments;
  /// Replaces conjuncts and the assignments' expressions: its columns are those of the table, the values of
  /// the assignments that have one, and the columns of other tables that RETURNING names.
  ChangeSource source;
  std::vector<ChangeValue> defaults;
  std::vector<BoundCheck> checks;
  std::vector<OutputColumn> returning;  // over the new row as table 0, and the rest of the source as table 1
};
struct DeleteStatement {
  BoundTable table;
  std::vector<plan::Expr> conjuncts;
  ChangeSource source;  // replaces conjuncts; as for UPDATE
  std::vector<OutputColumn> returning;
};
/// Snapshot isolation is the only level.
struct TransactionStatement {
  enum class Kind : uint8_t { kBegin, kCommit, kRollback, kSavepoint, kRollbackTo, kRelease };
  Kind kind = Kind::kBegin;
  std::string savepoint;  // for the last three
};

/// PREPARE: bound once to learn the parameters' types, and again with their values by each EXECUTE.
struct PrepareStatement {
  std::string name;
  std::string text;         // of the inner statement
  std::vector<Type> types;  // of $1, $2, …; precision: the written bytes of an integer type, or 0
};
struct ExecuteStatement {
  std::string name;
  std::vector<plan::Expr> arguments;  // constants, perhaps without a type yet
  int position = -1;
};
struct DeallocateStatement {
  std::string name;  // empty: all
};

struct ExplainStatement {
  /// The explained statement. For an ExecuteStatement BindExplained finds it.
  using Explained =
      std::variant<TreeStatement, InsertStatement, UpdateStatement, DeleteStatement, ExecuteStatement>;
  bool analyze = false;
  bool json = false;  // one JSON document instead of lines
  Explained statement;
};

using Statement = std::variant<TreeStatement, ExplainStatement, DropTableStatement, AlterTableStatement,
                               CreateSchemaStatement, CreateViewStatement, AnalyzeStatement, SetStatement,
                               ShowStatement, CreateTableStatement, CreateTableAsStatement, TruncateStatement,
                               VacuumStatement, CreateIndexStatement, DropIndexStatement, InsertStatement,
                               UpdateStatement, DeleteStatement, CopyStatement, CopyToStatement,
                               TransactionStatement, PrepareStatement, ExecuteStatement, DeallocateStatement>;

/// Whether transactions change it; columnar tables are loaded and appended to, and then read.
inline bool IsRecordTable(const proto::Table& table) {
  return table.has_record();
}

/// Whether it has no primary key of its own: its rows' key is a hidden column, its last.
inline bool HasRowIds(const proto::Table& table) {
  const int last = table.columns_size() - 1;
  return last >= 0 && table.columns(last).hidden() && !table.columns(last).dropped();
}

/// The session's settings that decide what names mean.
struct NameSettings {
  /// nam.default_storage: the storage for CREATE TABLE; auto: columnar for CREATE TABLE AS and files, else
  /// record tables.
  enum class Storage : uint8_t { kAuto, kColumnar, kRecord };
  Storage default_storage = Storage::kAuto;
  std::vector<std::string> search_path = {"public"};

  bool operator==(const NameSettings&) const = default;
};

/// Looks up tables, views and schemas for the binder, under the catalog's names (base/qualified_names.h).
/// Names come in lower case unless they were quoted.
class TableSource {
 public:
  virtual ~TableSource() = default;
  virtual const NameSettings& settings() const {
    static const NameSettings kDefault;
    return kDefault;
  }
  /// NOT_FOUND: there is no such table.
  virtual absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) = 0;
  /// Of tables and views, for "did you mean".
  virtual std::vector<std::string> Names() = 0;
  /// The columns in the files that a pattern names: csv/sniffer.h. UNIMPLEMENTED where no file may be read.
  virtual absl::StatusOr<csv::SniffedFiles> Sniff(const std::string& /*pattern*/,
                                                  const csv::SniffOptions& /*options*/,
                                                  csv::Dialect& /*dialect*/) {
    return absl::UnimplementedError("no file is read here");
  }
  /// Keeps the files that the COPY names for the statement, whose plans know them by the number that this
  /// returns. The COPY's table describes their rows.
  virtual uint32_t AddFiles(const CopyStatement& /*files*/) { return 0; }
};

/// A name as SQL takes it: in quotes unless it is a word in lower case, and none of the grammar's.
std::string WrittenIdentifier(const std::string& name);

/// The table or view that a name of one or two parts means: an empty schema stands for the search path.
/// NOT_FOUND if there is none.
absl::StatusOr<std::shared_ptr<const proto::Table>> LookUpRelation(TableSource& tables,
                                                                   const std::string& schema,
                                                                   const std::string& name);

/// Splits a script at its top-level semicolons, with the parser's own scanner: strings, quoted names, dollar
/// quotes and comments may contain some. `complete` is false if the last piece lacks its semicolon.
struct ScriptPiece {
  std::string text;
  bool complete;
};
std::vector<ScriptPiece> SplitStatements(std::string_view script);

/// Whether the statement's first word is BEGIN or START.
bool BeginsTransaction(const std::string& text);
/// Whether the statement begins with ROLLBACK TO.
bool RollsBackToSavepoint(const std::string& text);

/// The default of a columnar table's column: NULL, or a constant.
absl::StatusOr<Value> ConstantDefault(const proto::Column& column);

/// Whether the text is one statement of PostgreSQL's grammar.
bool Parses(const std::string& text);

/// Parses one statement with PostgreSQL's grammar and binds it. Refuses unsupported parts by name, with
/// position and hint; ignores nothing. `time`: the values of now() and CURRENT_DATE, which are refused
/// without it; and the zone of timestamps that are written without one, or printed.
absl::StatusOr<Statement> Bind(const std::string& text, TableSource& tables, const StatementTime& time = {});

/// The statement of a PREPARE with these arguments for its parameters: 42601 if there are more or fewer,
/// 42804 if one cannot have its parameter's type.
absl::StatusOr<Statement> BindPrepared(const PrepareStatement& prepared, const ExecuteStatement& execute,
                                       TableSource& tables, const StatementTime& time);

/// The same for EXPLAIN EXECUTE: an EXPLAIN of the prepared statement. Errors as of BindPrepared.
absl::StatusOr<ExplainStatement> BindExplained(const ExplainStatement& explain,
                                               const PrepareStatement& prepared,
                                               const ExecuteStatement& execute, TableSource& tables,
                                               const StatementTime& time);

}  // namespace nam::sql
