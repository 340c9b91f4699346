#include "workload/benchmark_data.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "catalog/missing_servers.h"
#include "dataset/load.h"

namespace nam {
namespace {

constexpr int kThreadsMax = 16;  // if none are asked for: each keeps a batch of rows

dataset::GeneratorOptions GeneratorOf(const DataSource& source) {
  return {.scale_factor = source.scale_factor, .seed = source.seed};
}

dataset::WorkOptions WorkOf(const DataSource& source, const std::string& doing, ProgressLine& progress,
                            const std::atomic<bool>& cancelled) {
  return {.threads = source.threads_used(), .progress = progress.For(doing), .cancelled = &cancelled};
}

/// The tables of a source, one after the other.
class SourceRows {
 public:
  SourceRows(const Benchmark& benchmark, const DataSource& source) : benchmark_(benchmark), source_(source) {
    if (source.from.empty()) generator_ = benchmark.make_generator(GeneratorOf(source));
  }

  const std::vector<dataset::Table>& tables() const { return benchmark_.tables(); }
  absl::StatusOr<uint64_t> Expected(size_t table) const {
    if (generator_ != nullptr) return generator_->Rows(table);
    NAM_ASSIGN_OR_RETURN(const auto file, dataset::TblFile::Open(source_.from, tables()[table]));
    return file.estimated_rows();
  }
  absl::StatusOr<uint64_t> Drive(fabric::Fabric& fabric, size_t table, const dataset::Sink& sink,
                                 const dataset::WorkOptions& work) const {
    if (generator_ != nullptr) return dataset::LoadGenerated(fabric, *generator_, table, sink, work);
    return dataset::LoadTbl(fabric, source_.from, tables()[table], sink, work);
  }

 private:
  const Benchmark& benchmark_;
  const DataSource& source_;
  std::unique_ptr<dataset::Generator> generator_;
};

const char kNoColumn[] = "";

/// The table's column in `columns`.
std::string ColumnOf(const std::vector<Benchmark::Index>& columns, const std::string& table) {
  for (const Benchmark::Index& column : columns) {
    if (column.table == table) return column.column;
  }
  return kNoColumn;
}

bool HasColumnsOf(const proto::Table& table, const partitioner::TableSchema& schema) {
  std::vector<std::string> columns;
  for (const proto::Column& column : table.columns()) {
    if (!column.hidden()) columns.push_back(column.name());
  }
  return std::equal(
      columns.begin(), columns.end(), schema.columns.begin(), schema.columns.end(),
      [](const std::string& name, const partitioner::ColumnSchema& column) { return name == column.name; });
}

/// The benchmark that has such a table; null if none has.
const Benchmark* OwnerOf(const proto::Table& table) {
  for (const Benchmark* const benchmark : {&SsbBenchmark(), &TpchBenchmark()}) {
    for (const dataset::Table& own : benchmark->tables()) {
      if (own.schema.name == table.name() && HasColumnsOf(table, own.schema)) return benchmark;
    }
  }
  return nullptr;
}

/// Benchmarks have tables of the same names. One of them does not replace another's, nor a user's.
absl::Status CheckOwnTables(catalog::Client& catalog, const Benchmark& benchmark) {
  for (const dataset::Table& own : benchmark.tables()) {
    const auto there = catalog.GetTable(own.schema.name);
    if (absl::IsNotFound(there.status())) continue;
    NAM_RETURN_IF_ERROR(there.status());
    if (HasColumnsOf(**there, own.schema)) continue;
    const Benchmark* const owner = OwnerOf(**there);
    return absl::FailedPreconditionError(
        absl::StrCat("there is another table ", own.schema.name, ", ",
                     owner == nullptr ? "with other columns" : absl::StrCat("that of ", owner->title),
                     "; rename or drop it in nam sql, or load into another cluster (--state-dir)"));
  }
  return absl::OkStatus();
}

/// A memory server lost during the last table's load takes blocks of the first tables with it.
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

absl::StatusOr<LoadedTable> LoadTable(catalog::Attachment& attachment, const SourceRows& rows_of,
                                      size_t table, partitioner::LoadOptions options, ProgressLine& progress,
                                      const dataset::WorkOptions& work) {
  Clock& clock = attachment.fabric().clock();
  const partitioner::TableSchema& schema = rows_of.tables()[table].schema;
  const int64_t start_ns = clock.NowNs();
  NAM_ASSIGN_OR_RETURN(options.expected_rows, rows_of.Expected(table));
  NAM_ASSIGN_OR_RETURN(const auto loader, partitioner::BeginLoad(attachment, schema, options));
  const auto sink = [&](const partitioner::ColumnBatch& batch) { return loader->Append(batch); };
  NAM_ASSIGN_OR_RETURN(const uint64_t rows, rows_of.Drive(attachment.fabric(), table, sink, work));
  if (work.cancelled->load()) return absl::CancelledError("interrupted");
  progress.Show(absl::StrCat("writing ", schema.name, " to the memory servers"));
  NAM_ASSIGN_OR_RETURN(proto::Table committed, loader->Commit());
  return LoadedTable{schema.name, rows, static_cast<double>(clock.NowNs() - start_ns) / 1e9,
                     std::move(committed)};
}

/// Each table is loaded, or replaced, by itself: names those that are, when a later one fails.
absl::Status WithLoaded(const absl::Status& error, const std::vector<LoadedTable>& loaded) {
  if (loaded.empty()) return error;
  const auto name = [](std::string* out, const LoadedTable& table) { out->append(table.name); };
  absl::Status all(error.code(), absl::StrCat(std::string(error.message()),
                                              "; loaded already: ", absl::StrJoin(loaded, ", ", name),
                                              "; the other tables are as before"));
  error.ForEachPayload([&](auto type, const absl::Cord& payload) { all.SetPayload(type, payload); });
  return all;
}

}  // namespace

int DataSource::threads_used() const {
  return threads != 0 ? threads : std::min(HostProcessors(), kThreadsMax);
}

absl::Status Validate(const DataSource& source) {
  NAM_RETURN_IF_ERROR(dataset::Validate(dataset::WorkOptions{.threads = source.threads_used()}));
  return source.from.empty() ? dataset::Validate(GeneratorOf(source)) : absl::OkStatus();
}

absl::StatusOr<std::vector<LoadedTable>> LoadBenchmark(catalog::Attachment& attachment,
                                                       const Benchmark& benchmark, const DataSource& source,
                                                       const partitioner::LoadOptions& options,
                                                       ProgressLine& progress,
                                                       const std::atomic<bool>& cancelled) {
  NAM_RETURN_IF_ERROR(CheckOwnTables(attachment.catalog(), benchmark));
  const SourceRows rows_of(benchmark, source);
  std::vector<LoadedTable> loaded;
  for (size_t table = 0; table < rows_of.tables().size(); ++table) {
    absl::StatusOr<LoadedTable> made = LoadTable(attachment, rows_of, table, options, progress,
                                                 WorkOf(source, "loading", progress, cancelled));
    if (!made.ok()) return WithLoaded(made.status(), loaded);
    loaded.push_back(*std::move(made));
  }
  progress.Clear();
  NAM_RETURN_IF_ERROR(CheckWhole(attachment.catalog(), loaded));
  return loaded;
}

absl::StatusOr<std::unique_ptr<SqliteOracle>> LoadOracle(fabric::Fabric& fabric, const Benchmark& benchmark,
                                                         const DataSource& source,
                                                         const std::vector<BenchmarkQuery>& queries,
                                                         ProgressLine& progress,
                                                         const std::atomic<bool>& cancelled) {
  NAM_ASSIGN_OR_RETURN(auto oracle, SqliteOracle::Open(&cancelled));
  const SourceRows rows_of(benchmark, source);
  std::vector<std::string> texts;
  for (const BenchmarkQuery& query : queries) texts.push_back(query.sql);
  for (size_t table = 0; table < rows_of.tables().size(); ++table) {
    const partitioner::TableSchema& schema = rows_of.tables()[table].schema;
    NAM_RETURN_IF_ERROR(oracle->CreateTable(schema, texts, ColumnOf(benchmark.sqlite_keys, schema.name)));
    const auto sink = [&](const partitioner::ColumnBatch& batch) {
      return oracle->Append(schema.name, batch);
    };
    NAM_RETURN_IF_ERROR(
        rows_of.Drive(fabric, table, sink, WorkOf(source, "loading into SQLite", progress, cancelled))
            .status());
  }
  for (const Benchmark::Index& index : benchmark.sqlite_indexes)
    NAM_RETURN_IF_ERROR(oracle->CreateIndex(index.table, index.column));
  NAM_RETURN_IF_ERROR(oracle->Commit());
  progress.Clear();
  return oracle;
}

}  // namespace nam
