#include "bench/tuple_table.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "localcluster/state_directory.h"
#include "partitioner/column_batch.h"
#include "partitioner/loader.h"
#include "terminal/units.h"

namespace nam::bench {
namespace {

constexpr uint64_t kKilo = 1 << 10;
constexpr uint64_t kMega = 1 << 20;
constexpr uint64_t kBatchTuples = 1 << 16;
constexpr uint32_t kParts = 32;  // each written by one thread at a time
constexpr uint8_t kIntegerBytes = 4;
constexpr int64_t kAppendTimeoutMs = 600'000;

partitioner::TableSchema SchemaOf(const TupleTable& table) {
  const Type integer = {.kind = TypeKind::kInteger, .precision = kIntegerBytes};
  return {.name = table.name,
          .columns = {{table.key, integer}, {table.payload, integer}},
          .partitioning = {{table.payload, kParts}},
          .sort_column = {}};
}

/// Appends a batch of a table's tuples.
class Appender final : public dataset::ChunkWorker {
 public:
  Appender(const TupleTable& table, partitioner::TableLoader& loader, dataset::ChunkRun& run)
      : table_(table), run_(run), sink_([&](const auto& batch) { return loader.Append(batch); }) {}

  absl::Status Run(uint64_t chunk) override {
    const uint64_t first = chunk * kBatchTuples;
    const auto tuples = std::span(table_.tuples)
                            .subspan(first, std::min<uint64_t>(kBatchTuples, table_.tuples.size() - first));
    std::vector<int64_t>& keys = batch_.column(0).numbers;
    std::vector<int64_t>& payloads = batch_.column(1).numbers;
    keys.resize(tuples.size());
    payloads.resize(tuples.size());
    for (size_t i = 0; i < tuples.size(); ++i) {
      keys[i] = tuples[i].key;
      payloads[i] = tuples[i].payload;
    }
    batch_.set_rows(tuples.size());
    NAM_RETURN_IF_ERROR(run_.Emit(chunk, sink_, batch_));
    run_.Report(tuples.size(), table_.tuples.size());
    return absl::OkStatus();
  }

 private:
  const TupleTable& table_;
  dataset::ChunkRun& run_;
  const dataset::Sink sink_;
  partitioner::ColumnBatch batch_{2};
};

/// Writes one member of every tuple as four bytes in native byte order.
absl::Status WriteColumn(const std::string& path, std::span<const JoinTuple> tuples,
                         uint32_t JoinTuple::*member, const std::atomic<bool>& cancelled) {
  std::ofstream file(path, std::ios::binary);
  std::vector<uint32_t> numbers;
  for (uint64_t first = 0; first < tuples.size(); first += kBatchTuples) {
    if (cancelled) return absl::CancelledError("interrupted");
    const auto batch = tuples.subspan(first, std::min<uint64_t>(kBatchTuples, tuples.size() - first));
    numbers.clear();
    for (const JoinTuple& tuple : batch) numbers.push_back(tuple.*member);
    file.write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(uint32_t)));
  }
  if (!file.flush()) return absl::InternalError(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

absl::StatusOr<double> Append(DuckDb& duckdb, const TupleTable& table, const std::string& directory,
                              const std::atomic<bool>& cancelled) {
  NAM_RETURN_IF_ERROR(
      WriteColumn(absl::StrCat(directory, "/", table.key), table.tuples, &JoinTuple::key, cancelled));
  NAM_RETURN_IF_ERROR(
      WriteColumn(absl::StrCat(directory, "/", table.payload), table.tuples, &JoinTuple::payload, cancelled));
  return duckdb.Load(
      {{"op", "append"},
       {"directory", directory},
       {"table", table.name},
       {"rows", table.tuples.size()},
       {"columns",
        {{{"name", table.key}, {"file", table.key}}, {{"name", table.payload}, {"file", table.payload}}}}},
      kAppendTimeoutMs);
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ParseCounts(const std::string& option,
                                                  const std::vector<std::string>& texts, uint64_t most) {
  std::vector<uint64_t> counts;
  for (const std::string& text : texts) {
    const absl::StatusOr<uint64_t> count = ParseBytes(text);  // has the same K and M
    if (!count.ok() || *count == 0 || *count > most) {
      return absl::InvalidArgumentError(absl::StrCat(option, "=", text, ": a number from 1 to ",
                                                     CountLabel(most), ", as 16M, 64K or 1000"));
    }
    counts.push_back(*count);
  }
  if (counts.empty()) return absl::InvalidArgumentError(absl::StrCat(option, " names no number"));
  return counts;
}

std::string CountLabel(uint64_t count) {
  if (count >= kMega && count % kMega == 0) return absl::StrCat(count / kMega, "M");
  if (count >= kKilo && count % kKilo == 0) return absl::StrCat(count / kKilo, "K");
  return absl::StrCat(count);
}

absl::Status LoadTuples(catalog::Attachment& attachment, const TupleTable& table,
                        const dataset::WorkOptions& options) {
  const uint64_t tuples = table.tuples.size();
  NAM_ASSIGN_OR_RETURN(const auto loader,
                       partitioner::BeginLoad(attachment, SchemaOf(table),
                                              {.expected_rows = tuples, .threads = options.threads}));
  dataset::ChunkRun run(attachment.fabric(), options, table.name);
  NAM_RETURN_IF_ERROR(run.Run((tuples + kBatchTuples - 1) / kBatchTuples,
                              [&] { return std::make_unique<Appender>(table, *loader, run); }));
  return loader->Commit().status();
}

absl::StatusOr<double> LoadTuples(DuckDb& duckdb, const TupleTable& table, const std::string& directory,
                                  const std::atomic<bool>& cancelled) {
  std::error_code error;
  std::filesystem::create_directory(directory, error);
  if (error) return absl::InternalError(absl::StrCat("cannot create ", directory, ": ", error.message()));
  const absl::StatusOr<double> seconds = Append(duckdb, table, directory, cancelled);
  RemoveTree(directory);
  return seconds;
}

}  // namespace nam::bench
