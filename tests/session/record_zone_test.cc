#include <gtest/gtest.h>

#include "tests/session/record_session.h"

/// Times in record tables: which moment and which zone DEFAULT and CHECK mean. The results are PostgreSQL
/// 15's.
namespace nam::session {
namespace {

class RecordZoneTest : public RecordSessionTest {
 protected:
  static constexpr int64_t kDayUs = 86'400'000'000;
};

/// 2026-09-21 14:13:20 UTC, and a day later.
TEST_F(RecordZoneTest, LiteralsAreConstantsOfCreateTable) {
  zone_ = "Pacific/Kiritimati";  // UTC+14
  ASSERT_EQ(Run("create table d (id int primary key, a date default 'today', b timestamptz default 'now', c "
                "date default current_date, e timestamptz default '2024-01-01 12:00', f timestamptz default "
                "date '2024-01-01', g date default timestamptz '2024-01-01 12:00', h timestamp default "
                "'now'::timestamptz) with (storage = record)"),
            "CREATE TABLE");
  now_us_ += kDayUs;
  zone_ = "UTC";
  EXPECT_EQ(Run("insert into d (id) values (1) returning *"),
            "INSERT 0 1 | 1,2026-09-22,2026-09-21 14:13:20+00,2026-09-22,2023-12-31 22:00:00+00,2024-01-01 "
            "00:00:00+00,2023-12-31,2026-09-21 14:13:20");
  zone_ = "Pacific/Kiritimati";
  EXPECT_EQ(Run("insert into d (id) values (2) returning a, b::text, c, e::text, f::text, g, h"),
            "INSERT 0 1 | 2026-09-22,2026-09-22 04:13:20+14,2026-09-23,2024-01-01 12:00:00+14,2024-01-01 "
            "00:00:00+14,2024-01-01,2026-09-22 04:13:20");
  EXPECT_EQ(Run("update d set a = default, c = default where id = 1 returning a, c"),
            "UPDATE 1 | 2026-09-22,2026-09-23");
}

TEST_F(RecordZoneTest, ChecksKnowTheTime) {
  ASSERT_EQ(Run("create table n (id int primary key, at timestamptz check (at <= now()), day date check (day "
                "<= 'today')) with (storage = record)"),
            "CREATE TABLE");
  EXPECT_EQ(Run("insert into n values (1, '2026-09-22 00:00+00', null)"), "23514");
  now_us_ += kDayUs;
  EXPECT_EQ(Run("insert into n values (1, '2026-09-22 00:00+00', null)"), "INSERT 0 1");
  EXPECT_EQ(Run("insert into n values (2, null, '2026-09-22')"), "23514");
  EXPECT_EQ(Run("insert into n values (2, null, '2026-09-21')"), "INSERT 0 1");
}

}  // namespace
}  // namespace nam::session
