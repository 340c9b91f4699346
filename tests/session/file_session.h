#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/status/statusor.h"
#include "session/session.h"
#include "tests/catalog/temp_folder.h"
#include "tests/cluster/in_process_cluster.h"
#include "tests/cluster/oracle.h"
#include "types/sql_error.h"

namespace nam::testing {

/// A session of a cluster of two memory and two compute servers, with a folder for the files that it reads.
class FileSession : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_.File(name);
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  absl::StatusOr<session::ResultSet> Run(const std::string& sql) { return cluster_.session().Execute(sql); }
  std::string Command(const std::string& sql) {
    const auto result = Run(sql);
    EXPECT_TRUE(result.ok()) << sql << ": " << result.status();
    return result.ok() ? result->command : "";
  }
  TextRows Rows(const std::string& sql) {
    const auto result = Run(sql);
    EXPECT_TRUE(result.ok()) << sql << ": " << result.status();
    return result.ok() ? ToText(*result) : TextRows();
  }
  SqlError ErrorOf(const std::string& sql) {
    const auto result = Run(sql);
    EXPECT_FALSE(result.ok()) << sql;
    return SqlErrorOf(result.status()).value_or(SqlError{});
  }

  const TempFolder folder_;
  InProcessCluster cluster_{{.fabric = fabric::Kind::kShm, .memory_servers = 2, .compute_servers = 2}};
};

}  // namespace nam::testing
