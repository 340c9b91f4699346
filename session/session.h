#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "session/result_batch.h"
#include "types/value.h"

namespace nam::catalog {
class Attachment;
}

namespace nam::session {

class RecordAccess;

/// What compute servers did for a query: over all of its pipelines, and all of them.
struct QueryWork {
  uint64_t rows = 0;      // streamed, of the driving table and of build sides
  uint64_t bytes = 0;     // moved; in place: looked at
  double total_ms = 0;    // sum over threads
  double waiting_ms = 0;  // of that, for blocks to arrive
};

/// How far a query has come: first servers stream a table, then the session finishes.
struct QueryProgress {
  std::string table;  // that is streamed; empty: the session finishes
  uint64_t rows_done =
      0;              // of those partitions that compute servers have taken up; of the session: rows so far
  uint64_t rows = 0;  // 0 if the session finishes: nobody knows
  double elapsed_ms = 0;
};

/// What a statement leaves; its rows, unless they went to a receiver.
struct ResultSet {
  struct Column {
    std::string name;
    Type type;
  };
  /// Shown to the user beside the result; the statement has succeeded.
  struct Warning {
    std::string message;
    std::string sqlstate;  // 00000 of a notice: nothing is wrong
  };
  std::vector<Column> columns;
  std::vector<std::vector<Value>> rows;
  std::string command;  // `SELECT 13`, `INSERT 0 3`, `DROP TABLE`, …
  std::vector<Warning> warnings;
  double elapsed_ms = 0;
  bool planned_before = false;  // its plan was that of the same statement some time ago
  QueryWork work;
};

/// Gets the rows of a statement as they come, on the thread that executes it. While it works on some, servers
/// make the next.
class RowReceiver {
 public:
  virtual ~RowReceiver() = default;
  /// Before the first rows, or at the end of a statement whose result has none; not of statements without a
  /// result. Any error, of this and of Add, ends the statement on all servers and is the statement's.
  virtual absl::Status Begin(const std::vector<ResultSet::Column>& columns) = 0;
  /// At most some thousand rows.
  virtual absl::Status Add(const ResultBatch& rows) = 0;
  /// Bytes of COPY … TO STDOUT, whose rows come by no other way. Errors as of Add.
  virtual absl::Status Write(std::string_view /*bytes*/) {
    return absl::UnimplementedError("this client takes no rows of COPY … TO STDOUT");
  }
  /// What it holds of the rows. Asked after each Add: counts against nam.result_mib_max.
  virtual uint64_t bytes_held() const { return 0; }
};

/// One user's session: the coordinator of its queries. Attached to the cluster like a small compute
/// server, it plans, tells the compute servers what to run, and reads their partial results
/// over the fabric. Used by one thread, but for Cancel.
class Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Open(catalog::Attachment& attachment);
  /// With the engine of its transactions (session/record_statements.h); without one, statements on
  /// record tables are refused.
  static absl::StatusOr<std::unique_ptr<Session>> Open(catalog::Attachment& attachment,
                                                       std::unique_ptr<RecordAccess> records);
  virtual ~Session() = default;

  /// Runs one statement, whose rows go to the receiver. User errors carry a SqlError; CANCELLED after Cancel;
  /// UNAVAILABLE names the server that was lost. After an error the rows that the receiver has got are not
  /// the whole result: those of one that is neither sorted nor grouped come while servers still run, and
  /// 08006 says that a server was lost that had delivered some.
  virtual absl::StatusOr<ResultSet> Execute(const std::string& statement, RowReceiver& receiver) = 0;
  /// As above, with all rows in the result. 53200 if they take more memory than nam.result_mib_max.
  absl::StatusOr<ResultSet> Execute(const std::string& statement);
  /// Ends the statement that runs, on every server; if none does, the next one. Any thread, and safe in a
  /// signal handler.
  virtual void Cancel() = 0;
  /// From now on a query that takes long tells several times a second how far it is, on the thread that
  /// executes it. Empty: nobody is told.
  virtual void OnProgress(std::function<void(const QueryProgress&)> report) = 0;
  /// The settings nam.<name>, with their present values; SHOW ALL has all.
  virtual std::map<std::string, std::string> Settings() const = 0;
};

}  // namespace nam::session
