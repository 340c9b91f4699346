#include "simulation/benchmark_answers.h"

#include <algorithm>

#include "base/status_macros.h"
#include "partitioner/loader.h"

namespace nam::simulation {

absl::StatusOr<std::unique_ptr<BenchmarkAnswers>> BenchmarkAnswers::Make(const Benchmark& benchmark,
                                                                         double scale_factor) {
  const dataset::GeneratorOptions generated{.scale_factor = scale_factor};
  NAM_RETURN_IF_ERROR(dataset::Validate(generated));
  auto answers = std::unique_ptr<BenchmarkAnswers>(new BenchmarkAnswers(benchmark));
  answers->generator_ = benchmark.make_generator(generated);
  const std::vector<BenchmarkQuery> queries = benchmark.queries({.scale_factor = scale_factor});
  std::vector<std::string> sql;
  for (const BenchmarkQuery& query : queries) sql.push_back(query.sql);
  NAM_ASSIGN_OR_RETURN(const auto oracle, SqliteOracle::Open());
  for (size_t t = 0; t < benchmark.tables().size(); ++t) {
    const partitioner::TableSchema& schema = benchmark.tables()[t].schema;
    partitioner::ColumnBatch& batch = answers->tables_.emplace_back(schema.columns.size());
    answers->generator_->Fill(t, 0, answers->generator_->Units(t), batch);
    const auto key = std::find_if(benchmark.sqlite_keys.begin(), benchmark.sqlite_keys.end(),
                                  [&](const Benchmark::Index& index) { return index.table == schema.name; });
    NAM_RETURN_IF_ERROR(
        oracle->CreateTable(schema, sql, key == benchmark.sqlite_keys.end() ? std::string() : key->column));
    NAM_RETURN_IF_ERROR(oracle->Append(schema.name, batch));
  }
  for (const Benchmark::Index& index : benchmark.sqlite_indexes)
    NAM_RETURN_IF_ERROR(oracle->CreateIndex(index.table, index.column));
  NAM_RETURN_IF_ERROR(oracle->Commit());
  for (const BenchmarkQuery& query : queries) {
    Query& out = answers->queries_.emplace_back(Query{query.id, query.sql, {}});
    NAM_ASSIGN_OR_RETURN(out.rows, oracle->Run(benchmark.sqlite_sql(query.sql)));
  }
  return answers;
}

bool BenchmarkAnswers::AreRight(const Query& query, const SqliteOracle::Rows& rows) const {
  return benchmark_.sqlite_digits == 0 ? SameRows(query.rows, rows)
                                       : SameRowsTo(benchmark_.sqlite_digits, query.rows, rows);
}

absl::Status LoadTables(catalog::Attachment& attachment, const BenchmarkAnswers& answers,
                        const LoadShape& shape) {
  const std::vector<dataset::Table>& tables = answers.benchmark().tables();
  for (size_t t = 0; t < tables.size(); ++t) {
    partitioner::LoadOptions options;
    options.block_bytes = shape.block_bytes;
    options.pointer_group = shape.pointer_group;
    options.replace = true;
    options.expected_rows = answers.rows(t).rows();
    partitioner::TableSchema schema = tables[t].schema;
    for (partitioner::PartitionSchema& key : schema.partitioning) key.parts = shape.fan_out;
    NAM_ASSIGN_OR_RETURN(const auto loader, partitioner::BeginLoad(attachment, schema, options));
    NAM_RETURN_IF_ERROR(loader->Append(answers.rows(t)));
    NAM_RETURN_IF_ERROR(loader->Commit().status());
  }
  return absl::OkStatus();
}

}  // namespace nam::simulation
