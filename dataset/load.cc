#include "dataset/load.h"

#include <algorithm>
#include <memory>

#include "base/status_macros.h"
#include "dataset/generated_chunks.h"

namespace nam::dataset {
namespace {

class GeneratingWorker final : public ChunkWorker {
 public:
  GeneratingWorker(const GeneratedChunks& chunks, const Sink& sink, ChunkRun& run)
      : chunks_(chunks), sink_(sink), run_(run), batch_(chunks.NewBatch()) {}

  absl::Status Run(uint64_t chunk) override {
    chunks_.Fill(chunk, batch_);
    NAM_RETURN_IF_ERROR(run_.Emit(chunk, sink_, batch_));
    run_.Report(batch_.rows(), chunks_.rows());
    return absl::OkStatus();
  }

 private:
  const GeneratedChunks& chunks_;
  const Sink& sink_;
  ChunkRun& run_;
  partitioner::ColumnBatch batch_;
};

}  // namespace

absl::StatusOr<uint64_t> LoadGenerated(fabric::Fabric& fabric, const Generator& generator, size_t table,
                                       const Sink& sink, const WorkOptions& options) {
  NAM_RETURN_IF_ERROR(Validate(options));
  const GeneratedChunks chunks(generator, table, options);
  ChunkRun run(fabric, options, chunks.table().schema.name);
  NAM_RETURN_IF_ERROR(
      run.Run(chunks.count(), [&] { return std::make_unique<GeneratingWorker>(chunks, sink, run); }));
  return run.rows_done();
}

absl::StatusOr<uint64_t> LoadTbl(fabric::Fabric& fabric, const std::string& directory, const Table& table,
                                 const Sink& sink, const WorkOptions& options) {
  NAM_RETURN_IF_ERROR(Validate(options));
  NAM_ASSIGN_OR_RETURN(const TblFile file, TblFile::Open(directory, table));
  return ReadTbl(fabric, file, sink, options);
}

}  // namespace nam::dataset
