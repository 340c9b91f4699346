#include "workload/ssb_data.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/missing_servers.h"
#include "ssb/load.h"

namespace nam {
namespace {

ssb::GeneratorOptions GeneratorOf(const SsbSource& source) {
  return {.scale_factor = source.scale_factor, .seed = source.seed};
}

ssb::WorkOptions WorkOf(const SsbSource& source, const std::string& doing, ProgressLine& progress,
                        const std::atomic<bool>& cancelled) {
  return {.threads = source.threads, .progress = progress.For(doing), .cancelled = &cancelled};
}

absl::StatusOr<uint64_t> Drive(fabric::Fabric& fabric, const SsbSource& source, ssb::Table table,
                               const ssb::Sink& sink, const ssb::WorkOptions& work) {
  if (!source.from.empty()) return ssb::LoadTbl(fabric, source.from, table, sink, work);
  const ssb::Generator generator(GeneratorOf(source));
  return ssb::LoadGenerated(fabric, generator, table, sink, work);
}

absl::StatusOr<uint64_t> ExpectedRows(const SsbSource& source, ssb::Table table) {
  if (source.from.empty()) return ssb::Generator(GeneratorOf(source)).Rows(table);
  NAM_ASSIGN_OR_RETURN(const ssb::TblFile file, ssb::TblFile::Open(source.from, table));
  return file.estimated_rows();
}

/// A memory server that goes while the last table is loaded takes blocks of the first ones with it.
absl::Status CheckWhole(catalog::Client& catalog, const std::vector<LoadedTable>& loaded) {
  NAM_ASSIGN_OR_RETURN(const proto::Cluster cluster, catalog.GetCluster());
  for (const LoadedTable& table : loaded) {
    for (const catalog::MissingServer& server : catalog::MissingServersOf(table.table, cluster)) {
      if (!server.buried()) continue;
      return absl::UnavailableError(absl::StrFormat(
          "table %s has lost %d blocks (%d bytes) with memory server %d, which went during the "
          "load; load again",
          table.name, server.blocks, server.bytes, server.member.id()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const SsbSource& source) {
  NAM_RETURN_IF_ERROR(ssb::Validate(ssb::WorkOptions{.threads = source.threads}));
  return source.from.empty() ? ssb::Validate(GeneratorOf(source)) : absl::OkStatus();
}

absl::StatusOr<std::vector<LoadedTable>> LoadSsb(catalog::Attachment& attachment, const SsbSource& source,
                                                 const partitioner::LoadOptions& options,
                                                 ProgressLine& progress, const std::atomic<bool>& cancelled) {
  Clock& clock = attachment.fabric().clock();
  std::vector<LoadedTable> loaded;
  for (const ssb::Table table : ssb::kAllTables) {
    const int64_t start_ns = clock.NowNs();
    partitioner::LoadOptions load = options;
    NAM_ASSIGN_OR_RETURN(load.expected_rows, ExpectedRows(source, table));
    NAM_ASSIGN_OR_RETURN(const auto loader, partitioner::BeginLoad(attachment, ssb::Schema(table), load));
    const auto sink = [&](const partitioner::ColumnBatch& batch) { return loader->Append(batch); };
    NAM_ASSIGN_OR_RETURN(const uint64_t rows, Drive(attachment.fabric(), source, table, sink,
                                                    WorkOf(source, "loading", progress, cancelled)));
    if (cancelled) return absl::CancelledError("interrupted");
    progress.Show(absl::StrCat("writing ", std::string(ssb::TableName(table)), " to the memory servers"));
    NAM_ASSIGN_OR_RETURN(proto::Table committed, loader->Commit());
    loaded.push_back({std::string(ssb::TableName(table)), rows,
                      static_cast<double>(clock.NowNs() - start_ns) / 1e9, std::move(committed)});
  }
  progress.Clear();
  NAM_RETURN_IF_ERROR(CheckWhole(attachment.catalog(), loaded));
  return loaded;
}

absl::StatusOr<std::unique_ptr<SqliteOracle>> LoadSsbOracle(fabric::Fabric& fabric, const SsbSource& source,
                                                            const std::vector<std::string>& queries,
                                                            ProgressLine& progress,
                                                            const std::atomic<bool>& cancelled) {
  NAM_ASSIGN_OR_RETURN(auto oracle, SqliteOracle::Open(&cancelled));
  for (const ssb::Table table : ssb::kAllTables) {
    const std::string name(ssb::TableName(table));
    // The dimensions are joined by their first columns.
    const partitioner::TableSchema schema = ssb::Schema(table);
    const std::string key = table == ssb::Table::kLineorder ? std::string() : schema.columns[0].name;
    NAM_RETURN_IF_ERROR(oracle->CreateTable(schema, queries, key));
    const auto sink = [&](const partitioner::ColumnBatch& batch) { return oracle->Append(name, batch); };
    NAM_RETURN_IF_ERROR(
        Drive(fabric, source, table, sink, WorkOf(source, "loading into SQLite", progress, cancelled))
            .status());
  }
  NAM_RETURN_IF_ERROR(oracle->Commit());
  progress.Clear();
  return oracle;
}

}  // namespace nam
