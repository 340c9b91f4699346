#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "csv/byte_source.h"
#include "session/result_batch.h"
#include "types/value.h"

namespace nam::catalog {
class Attachment;
}

namespace nam::proto {
class Table;
}

namespace nam::session {

class RecordAccess;

/// The work of compute servers for a query, over all of its pipelines and all servers.
struct QueryWork {
  uint64_t rows = 0;      // streamed, of the driving table and of build sides
  uint64_t bytes = 0;     // moved; in place: read
  double total_ms = 0;    // sum over threads
  double waiting_ms = 0;  // of that, for blocks to arrive
};

/// The progress of a query: first servers stream a table, then the session finishes.
struct QueryProgress {
  std::string table;  // the streamed table; empty: the session finishes
  uint64_t rows_done =
      0;              // of the partitions that compute servers have taken up; for the session: rows so far
  uint64_t rows = 0;  // 0 if the session finishes: unknown
  double elapsed_ms = 0;
};

/// A statement's result, with its rows unless they went to a receiver.
struct ResultSet {
  struct Column {
    std::string name;
    Type type;
  };
  /// Shown to the user beside the result; the statement has succeeded.
  struct Warning {
    std::string message;
    std::string sqlstate;  // 00000 for a notice
  };
  std::vector<Column> columns;
  std::vector<std::vector<Value>> rows;
  std::string command;  // `SELECT 13`, `INSERT 0 3`, `DROP TABLE`, …
  std::vector<Warning> warnings;
  double elapsed_ms = 0;
  bool planned_before = false;  // reused the plan of an earlier run
  QueryWork work;
};

/// Makes the result of a statement that returns no rows.
inline ResultSet CommandResult(std::string command) {
  ResultSet result;
  result.command = std::move(command);
  return result;
}

/// Gets the rows of a statement as they come, on the thread that executes it. While it works on some, servers
/// make the next.
class RowReceiver {
 public:
  virtual ~RowReceiver() = default;
  /// Called before the first rows, or at the end of a statement whose result has none; not for statements
  /// without a result. Any error, of this and of Add, ends the statement on all servers and is the
  /// statement's.
  virtual absl::Status Begin(const std::vector<ResultSet::Column>& columns) = 0;
  /// At most some thousand rows.
  virtual absl::Status Add(const ResultBatch& rows) = 0;
  /// Gets the bytes of COPY … TO STDOUT, which sends no rows. Errors as of Add.
  virtual absl::Status Write(std::string_view /*bytes*/) {
    return absl::UnimplementedError("this client takes no rows of COPY … TO STDOUT");
  }
  /// The rows of COPY … FROM STDIN: the process's standard input, unless the client has them elsewhere. Read
  /// by one thread at a time, not only the one that executes the statement.
  virtual std::unique_ptr<csv::ByteSource> Input() { return csv::StandardInput(); }
  /// The bytes of rows that it holds. Called after each Add: counts against nam.result_mib_max.
  virtual uint64_t bytes_held() const { return 0; }
};

/// One user's session: the coordinator of its queries. It is attached to the cluster like a small compute
/// server, plans queries, tells the compute servers what to run, and reads their partial results over the
/// fabric. Used by one thread, except Cancel.
class Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Open(catalog::Attachment& attachment);
  /// With the engine of its transactions (session/record_statements.h); without one, statements on record
  /// tables are refused.
  static absl::StatusOr<std::unique_ptr<Session>> Open(catalog::Attachment& attachment,
                                                       std::unique_ptr<RecordAccess> records);
  virtual ~Session() = default;

  /// Runs one statement, whose rows go to the receiver. User errors carry a SqlError; CANCELLED after Cancel;
  /// UNAVAILABLE names a lost server. After an error the receiver's rows are incomplete: those of a result
  /// that is neither sorted nor grouped come while servers still run, and 08006 means that a server that had
  /// delivered some was lost.
  virtual absl::StatusOr<ResultSet> Execute(const std::string& statement, RowReceiver& receiver) = 0;
  /// As above, with all rows in the result. 53200 if they take more memory than nam.result_mib_max.
  absl::StatusOr<ResultSet> Execute(const std::string& statement);
  /// Ends the running statement on every server; if there is none, the next one. Any thread, and safe in a
  /// signal handler.
  virtual void Cancel() = 0;
  /// Reports the progress of long queries several times a second, on the thread that executes them. Empty: no
  /// reports.
  virtual void OnProgress(std::function<void(const QueryProgress&)> report) = 0;
  /// The table or view that a statement's name means: an empty schema stands for the search path. NOT_FOUND
  /// if there is none.
  virtual absl::StatusOr<std::shared_ptr<const proto::Table>> FindRelation(const std::string& schema,
                                                                           const std::string& name) = 0;
  /// The settings nam.<name> with their current values; SHOW ALL has all.
  virtual std::map<std::string, std::string> Settings() const = 0;
};

}  // namespace nam::session
