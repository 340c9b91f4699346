#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/session/file_session.h"

/// VACUUM of record tables.
namespace nam::testing {
namespace {

class RecordVacuumTest : public FileSession {
 protected:
  /// The notice, without the table's name.
  std::string Vacuum(const std::string& table) {
    const auto result = Run("vacuum " + table);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return "";
    EXPECT_EQ(result->command, "VACUUM");
    EXPECT_EQ(result->warnings.size(), 1u);
    const std::string prefix = absl::StrCat("table \"", table, "\": ");
    EXPECT_TRUE(result->warnings[0].message.starts_with(prefix)) << result->warnings[0].message;
    return result->warnings[0].message.substr(prefix.size());
  }
};

TEST_F(RecordVacuumTest, ItSaysWhatItHasDone) {
  for (const char* const table : {"t", "u"}) {
    Command(absl::StrCat("create table ", table, " (k int primary key, a int) with (storage = record)"));
    Command(absl::StrCat("create index on ", table, " (a)"));
    Command(absl::StrCat("insert into ", table, " values (1, 1), (2, 2), (3, 3)"));
  }
  Command("update t set a = a + 10 where k < 3");
  EXPECT_EQ(Vacuum("t"), "2 old versions of rows and 2 dead index entries were removed");
  EXPECT_EQ(Vacuum("t"), "0 old versions of rows and 0 dead index entries were removed");
  EXPECT_EQ(Vacuum("u"), "0 old versions of rows and 0 dead index entries were removed");
  EXPECT_EQ(Rows("select k from t where a = 12").size(), 1u);
}

TEST_F(RecordVacuumTest, NotInATransaction) {
  Command("create table t (k int primary key) with (storage = record)");
  Command("begin");
  EXPECT_EQ(ErrorOf("vacuum t").sqlstate, "25001");
  Command("rollback");
}

}  // namespace
}  // namespace nam::testing
