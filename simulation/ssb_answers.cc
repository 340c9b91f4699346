#include "simulation/ssb_answers.h"

#include "base/status_macros.h"
#include "partitioner/loader.h"
#include "ssb/queries.h"

namespace nam::simulation {

absl::StatusOr<std::unique_ptr<SsbAnswers>> SsbAnswers::Make(double scale_factor) {
  const dataset::GeneratorOptions generated{.scale_factor = scale_factor};
  NAM_RETURN_IF_ERROR(dataset::Validate(generated));
  const ssb::Generator generator(generated);
  std::vector<std::string> sql;
  for (const ssb::Query& query : ssb::Queries()) sql.emplace_back(query.sql);
  NAM_ASSIGN_OR_RETURN(const auto oracle, SqliteOracle::Open());
  auto answers = std::make_unique<SsbAnswers>();
  for (const ssb::Table table : ssb::kAllTables) {
    const partitioner::TableSchema schema = ssb::Schema(table);
    partitioner::ColumnBatch& batch = answers->tables_.emplace_back(schema.columns.size());
    generator.Fill(table, 0, generator.Units(table), batch);
    const std::string key = table == ssb::Table::kLineorder ? std::string() : schema.columns[0].name;
    NAM_RETURN_IF_ERROR(oracle->CreateTable(schema, sql, key));
    NAM_RETURN_IF_ERROR(oracle->Append(schema.name, batch));
  }
  NAM_RETURN_IF_ERROR(oracle->Commit());
  for (const ssb::Query& query : ssb::Queries()) {
    Query& out = answers->queries_.emplace_back();
    out.id = std::string(query.id);
    out.sql = std::string(query.sql);
    NAM_ASSIGN_OR_RETURN(out.rows, oracle->Run(out.sql));
  }
  return answers;
}

absl::Status LoadTables(catalog::Attachment& attachment, const SsbAnswers& answers, const LoadShape& shape) {
  for (const ssb::Table table : ssb::kAllTables) {
    partitioner::LoadOptions options;
    options.block_bytes = shape.block_bytes;
    options.pointer_group = shape.pointer_group;
    options.replace = true;
    options.expected_rows = answers.rows(table).rows();
    NAM_ASSIGN_OR_RETURN(const auto loader,
                         partitioner::BeginLoad(attachment, ssb::Schema(table, shape.fan_out), options));
    NAM_RETURN_IF_ERROR(loader->Append(answers.rows(table)));
    NAM_RETURN_IF_ERROR(loader->Commit().status());
  }
  return absl::OkStatus();
}

}  // namespace nam::simulation
