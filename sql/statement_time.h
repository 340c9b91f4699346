#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "types/time_zone.h"

namespace nam::sql {

class TableSource;

/// The context of a statement's text: the session's clock, and its schemas.
struct StatementTime {
  StatementTime() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a moment is one, in UTC.
  StatementTime(int64_t now) : now_us(now) {}
  StatementTime(std::optional<int64_t> now, std::string time_zone)
      : now_us(now), zone(std::move(time_zone)) {}

  /// The value of now(), or nullopt if no time is known. Notes that the statement depends on it.
  std::optional<int64_t> Now(bool of_statement = false) const {
    if (depends != nullptr) *depends = true;
    return of_statement && statement_us ? statement_us : now_us;
  }

  std::optional<int64_t> now_us;        // since 1970
  std::optional<int64_t> statement_us;  // in a transaction that began before, to which now_us belongs
  std::string zone = kUtc;              // a name that TimeZone::Find knows
  TableSource* tables = nullptr;        // with the schema that CURRENT_SCHEMA is; borrowed; null: public
  /// Set to true if the statement's meaning depends on the time. Borrowed; null: not wanted.
  bool* depends = nullptr;
};

}  // namespace nam::sql
