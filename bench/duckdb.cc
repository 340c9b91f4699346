#include "bench/duckdb.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace nam::bench {
namespace {

constexpr int64_t kOpenTimeoutMs = 60'000;
constexpr int64_t kQueryTimeoutMs = 600'000;
constexpr char kPackage[] = "node_modules/@duckdb/node-api";

/// The first executable of that name in $PATH; empty if none.
std::string FindProgram(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::string_view folders = path != nullptr ? path : "";
  while (!folders.empty()) {
    const size_t colon = std::min(folders.find(':'), folders.size());
    std::string file = std::string(folders.substr(0, colon)) + "/" + name;
    folders.remove_prefix(std::min(colon + 1, folders.size()));
    std::error_code error;
    if (std::filesystem::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

absl::StatusOr<Value> ToValue(const DuckDb::Json& cell) {
  if (cell.is_null()) return Value::Null();
  if (cell.is_string()) return Value::String(cell);
  return absl::InternalError("DuckDB's process sent a value that is no text");
}

}  // namespace

absl::Status DuckDb::Check(const std::string& peer_dir) {
  if (FindProgram("node").empty()) {
    return absl::FailedPreconditionError(
        "DuckDB as a peer needs Node.js, and there is no `node` in $PATH: apt-get install nodejs npm");
  }
  const std::string script = absl::StrCat(peer_dir, "/peer.mjs");
  std::error_code error;
  if (!std::filesystem::is_regular_file(script, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat("DuckDB as a peer needs ", script,
                     ", which is not there: --peer-dir is the source tree's bench/duckdb_peer"));
  }
  if (!std::filesystem::is_directory(absl::StrCat(peer_dir, "/", kPackage), error)) {
    return absl::FailedPreconditionError(
        absl::StrCat("DuckDB is not installed in ", peer_dir,
                     ": `./run bench` with --peer=duckdb does that, or `npm install` in there"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DuckDb>> DuckDb::Start(const DuckDbOptions& options) {
  NAM_RETURN_IF_ERROR(Check(options.peer_dir));
  std::unique_ptr<DuckDb> duckdb(new DuckDb(options));
  NAM_ASSIGN_OR_RETURN(duckdb->peer_, JsonPeer::Start({.name = "DuckDB",
                                                       .executable = FindProgram("node"),
                                                       .arguments = {options.peer_dir + "/peer.mjs"},
                                                       .log_file = options.log_file}));
  return duckdb;
}

absl::Status DuckDb::Open() {
  NAM_ASSIGN_OR_RETURN(const Json opened, peer_->Call({{"op", "open"},
                                                       {"threads", options_.threads},
                                                       {"memory_bytes", options_.memory_bytes},
                                                       {"file", options_.file}},
                                                      kOpenTimeoutMs));
  version_ = opened.value("version", "");
  return absl::OkStatus();
}

absl::StatusOr<double> DuckDb::Load(const Json& request, int64_t timeout_ms) {
  NAM_ASSIGN_OR_RETURN(const Json loaded, peer_->Call(request, timeout_ms));
  const auto seconds = loaded.find("seconds");
  if (seconds == loaded.end() || !seconds->is_number())
    return absl::InternalError("DuckDB's process did not tell how long loading took");
  return seconds->get<double>();
}

absl::StatusOr<DuckDb::Answer> DuckDb::Query(const std::string& sql) {
  NAM_ASSIGN_OR_RETURN(const Json answered, peer_->Call({{"op", "query"}, {"sql", sql}}, kQueryTimeoutMs));
  const auto elapsed = answered.find("elapsed_ms"), rows = answered.find("rows");
  if (elapsed == answered.end() || !elapsed->is_number() || rows == answered.end() || !rows->is_array())
    return absl::InternalError("DuckDB's process answered a query without time or rows");
  Answer answer{.elapsed_ms = elapsed->get<double>()};
  for (const Json& row : *rows) {
    std::vector<Value>& values = answer.rows.emplace_back();
    for (const Json& cell : row) {
      NAM_ASSIGN_OR_RETURN(values.emplace_back(), ToValue(cell));
    }
  }
  return answer;
}

}  // namespace nam::bench
