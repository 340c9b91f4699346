#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sql/bound_query.h"
#include "types/sql_error.h"

namespace nam::sql {

/// The star schema benchmark's five tables, and
///   t(id integer, n integer null, price decimal(2), rate decimal(4) null, day date null,
///     name varchar(20) null, ok boolean, "Odd Name" integer)
///   u(id integer, t_id integer, price decimal(2), amount decimal(4), name varchar(10), day date)
/// and the record tables
///   r(id integer primary key, k smallint, n bigint not null, d decimal(5,2), day date, at timestamp,
///     c char(3), v varchar(5), ok boolean, check (n > 0), check (k < n))
///   wide(id integer primary key, v varchar(257)), fits(id integer primary key, v varchar(256))
///   pairs(v integer, b char(2), a smallint, primary key (a, b)), with 4 versions
class FakeTables : public TableSource {
 public:
  FakeTables();

  absl::StatusOr<std::shared_ptr<const proto::Table>> Find(const std::string& name) override;
  std::vector<std::string> Names() override;
  /// No file is there.
  absl::StatusOr<csv::SniffedFiles> Sniff(const std::string& pattern, const csv::SniffOptions&,
                                          csv::Dialect&) override {
    return UserError("58P01", absl::StrCat("cannot read ", Quote(pattern)), -1);
  }

  /// A further table, by its CREATE TABLE.
  void AddRecordTable(const std::string& text);

  int lookups() const { return lookups_; }
  /// Makes every look-up fail with this error.
  void Fail(absl::Status status) { failure_ = std::move(status); }

 private:
  std::map<std::string, std::shared_ptr<const proto::Table>> tables_;
  absl::Status failure_;
  int lookups_ = 0;
};

/// The error of a statement that must not bind; a test failure and an empty error otherwise.
SqlError BindError(const std::string& text);

/// A statement with ^ before the byte where its error is; without a ^ the error has no position.
struct BindErrorCase {
  std::string marked;
  std::string sqlstate;
  std::string message;    // part of it
  std::string hint = {};  // part of it
};
void CheckBindError(const BindErrorCase& c);
void CheckBindErrors(const std::vector<BindErrorCase>& cases);

/// A statement of this kind, which must bind; a test failure and an empty statement otherwise.
template <typename Kind>
Kind BindAs(const std::string& text) {
  FakeTables tables;
  absl::StatusOr<Statement> statement = Bind(text, tables);
  EXPECT_TRUE(statement.ok()) << text << "\n" << statement.status();
  if (!statement.ok() || !std::holds_alternative<Kind>(*statement)) {
    ADD_FAILURE() << text;
    return {};
  }
  return std::get<Kind>(*std::move(statement));
}

}  // namespace nam::sql
