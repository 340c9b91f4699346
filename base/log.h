#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// The log of this process, for later reading by operators. One line per event, never one per row, block or
/// transaction:
///
///     2026-11-22T20:06:13.123Z warning memserver-3: the catalog is out of reach: connection refused
///
/// Members of a cluster call StartLog; other processes write only errors. Thread-safe. A line is written
/// before the call returns.
namespace nam {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

/// `error`, `warning`, `info` or `debug`; INVALID_ARGUMENT for others.
absl::StatusOr<LogLevel> ParseLogLevel(const std::string& name);

/// From now on writes lines up to `level` to standard error, under `name`.
void StartLog(LogLevel level, const std::string& name);

struct LogFileOptions {
  std::string directory;
  std::string name;  // `memserver-3`: role and member id
  uint64_t bytes_max = uint64_t{8} << 20;
  int older_files = 3;
};

/// Moves the log, and everything that this process and its libraries write to standard error, to a file:
/// `NAME.log` is appended to; at `bytes_max` it becomes `NAME.log.1`, that one `NAME.log.2`, and so on. Lines
/// since StartLog are written there, too. Refuses a link and another user's file.
absl::Status OpenLogFile(const LogFileOptions& options);

void Log(LogLevel level, const std::string& text);
inline void LogError(const std::string& text) {
  Log(LogLevel::kError, text);
}
inline void LogWarning(const std::string& text) {
  Log(LogLevel::kWarning, text);
}
inline void LogInfo(const std::string& text) {
  Log(LogLevel::kInfo, text);
}
inline void LogDebug(const std::string& text) {
  Log(LogLevel::kDebug, text);
}

}  // namespace nam
