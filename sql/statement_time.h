#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "types/time_zone.h"

namespace nam::sql {

/// What a statement's text does not show: the session's clock, and its schema.
struct StatementTime {
  StatementTime() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a moment is one, in UTC.
  StatementTime(int64_t now) : now_us(now) {}
  StatementTime(std::optional<int64_t> now, std::string time_zone)
      : now_us(now), zone(std::move(time_zone)) {}

  /// What now() is, or nothing where no time is known. Notes that the statement depends on it.
  std::optional<int64_t> Now(bool of_statement = false) const {
    if (depends != nullptr) *depends = true;
    return of_statement && statement_us ? statement_us : now_us;
  }

  std::optional<int64_t> now_us;        // since 1970
  std::optional<int64_t> statement_us;  // in a transaction that began before, which now_us is of
  std::string zone = kUtc;              // a name that TimeZone::Find knows
  std::string schema = "public";        // what CURRENT_SCHEMA is
  /// Set to true if the statement means something else at another time. Borrowed; null: not asked for.
  bool* depends = nullptr;
};

}  // namespace nam::sql
