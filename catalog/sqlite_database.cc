#include "catalog/sqlite_database.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/exhausted.h"
#include "base/status_macros.h"

namespace nam::catalog {

absl::Status Database::Damaged(const std::string& why) const {
  return absl::DataLossError(
      absl::StrFormat("the catalog store `%s` is damaged: %s; nothing was changed. Keep the file. A copy of "
                      "it serves only if "
                      "nothing was committed after it was made: the catalog compares it with what the memory "
                      "servers know, and "
                      "refuses an older one. Without such a copy, start with a new file and load again",
                      path_, why));
}

absl::Status Database::Error(int code) const {
  const int system_error = sqlite3_system_errno(handle_);
  const std::string why =
      absl::StrFormat("%s (SQLite %d)", sqlite3_errmsg(handle_), sqlite3_extended_errcode(handle_));
  std::error_code ignored;  // if the working directory is gone
  const std::string where = std::filesystem::absolute(path_, ignored).lexically_normal().string();
  switch (code & 0xFF) {
    case SQLITE_NOTADB:
      return absl::FailedPreconditionError(absl::StrFormat(
          "`%s` is not a catalog store: %s; name another file, or remove this one if it is not needed", path_,
          why));
    case SQLITE_CORRUPT:
      return Damaged(why);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::FailedPreconditionError(absl::StrFormat(
          "the catalog store `%s` is in use by another process; is a catalog already running?", path_));
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::FailedPreconditionError(absl::StrFormat(
          "cannot open the catalog store `%s` for writing: %s; the folder must exist and be writable", path_,
          system_error != 0 ? std::strerror(system_error) : why.c_str()));
    case SQLITE_FULL:
      return DiskFullError(absl::StrFormat(
          "no room for the catalog store `%s`: %s; free disk space and try again, nothing was changed", where,
          why));
    case SQLITE_IOERR:
      if (system_error == EIO) break;
      return DiskFullError(absl::StrFormat(
          "cannot write the catalog store `%s`: %s%s; check disk space and quota and try again, nothing was "
          "changed",
          where, why, system_error != 0 ? absl::StrCat(", ", std::strerror(system_error)) : std::string()));
    default:
      break;
  }
  return absl::InternalError(absl::StrFormat("the catalog store `%s` failed: %s", path_, why));
}

absl::Status Database::Execute(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

Statement& Statement::Bind(uint64_t value) {
  if (code_ == SQLITE_OK) code_ = sqlite3_bind_int64(statement_, ++bound_, static_cast<int64_t>(value));
  return *this;
}

Statement& Statement::BindText(const std::string& text) {
  if (code_ == SQLITE_OK) {
    code_ =
        sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  return *this;
}

Statement& Statement::BindBlob(const std::string& bytes) {
  if (code_ == SQLITE_OK) {
    code_ = sqlite3_bind_blob64(statement_, ++bound_, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  }
  return *this;
}

absl::StatusOr<bool> Statement::Next() {
  if (code_ != SQLITE_OK) return database_.Error(code_);
  const int step = sqlite3_step(statement_);
  if (step == SQLITE_ROW) return true;
  if (step == SQLITE_DONE) return false;
  return database_.Error(step);
}

absl::Status Statement::Run() {
  NAM_ASSIGN_OR_RETURN(bool more, Next());
  while (more) {
    NAM_ASSIGN_OR_RETURN(more, Next());
  }
  return absl::OkStatus();
}

std::string Statement::Bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  return data == nullptr ? std::string()
                         : std::string(static_cast<const char*>(data),
                                       static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

bool Statement::Is(char kind, int column) const {
  const int type = sqlite3_column_type(statement_, column);
  return type == (kind == 'i' ? SQLITE_INTEGER : kind == 't' ? SQLITE_TEXT : SQLITE_BLOB);
}

absl::StatusOr<uint64_t> ReadInteger(Database& database, const char* sql) {
  Statement statement(database, sql);
  NAM_ASSIGN_OR_RETURN(const bool found, statement.Next());
  return found ? statement.Integer(0) : 0;
}

absl::StatusOr<std::string> ReadText(Database& database, const char* sql) {
  Statement statement(database, sql);
  NAM_ASSIGN_OR_RETURN(const bool found, statement.Next());
  return found ? statement.Bytes(0) : std::string();
}

}  // namespace nam::catalog
