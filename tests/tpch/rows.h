#pragma once

#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "partitioner/column_batch.h"
#include "tpch/generator.h"

namespace nam::tpch {

/// All rows of a table, with columns by name.
class Rows {
 public:
  Rows(const Generator& generator, Table table)
      : table_(table), batch_(Tables()[table].schema.columns.size()) {
    generator.Fill(table, 0, generator.Units(table), batch_);
  }

  size_t size() const { return batch_.rows(); }
  const std::vector<int64_t>& numbers(std::string_view name) const {
    return batch_.column(Place(name)).numbers;
  }
  const std::vector<std::string_view>& texts(std::string_view name) const {
    return batch_.column(Place(name)).strings;
  }

 private:
  size_t Place(std::string_view name) const {
    const auto& columns = Tables()[table_].schema.columns;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].name == name) return i;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  const Table table_;
  partitioner::ColumnBatch batch_;
};

}  // namespace nam::tpch
