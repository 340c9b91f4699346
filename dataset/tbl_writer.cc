#include "dataset/tbl_writer.h"

#include <charconv>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/staged_file.h"
#include "base/status_macros.h"
#include "dataset/generated_chunks.h"
#include "dataset/row_text.h"
#include "types/date.h"

namespace nam::dataset {
namespace {

/// The offsets of the chunks' texts in the file. The offset of chunk k is known once chunk k - 1, which was
/// claimed earlier, has reported its length; so a thread waits at most for another's formatting.
class ChunkPlaces {
 public:
  ChunkPlaces(fabric::Fabric& fabric, uint64_t chunks) : fabric_(fabric), places_(chunks) {
    for (Place& place : places_) place.known = fabric.CreateEvent();
  }

  /// Returns the offset of chunk `chunk` and reports the next one's. Called once per chunk.
  absl::StatusOr<uint64_t> Reserve(uint64_t chunk, uint64_t bytes) {
    uint64_t offset = 0;
    if (chunk > 0) {
      const Place& previous = places_[chunk - 1];
      if (!previous.known->Wait(fabric_.clock().After(kWaitUs))) {
        Abandon(chunk);
        return absl::DeadlineExceededError("another thread did not get on with its rows in 10 minutes");
      }
      if (previous.abandoned) {
        Abandon(chunk);
        return absl::CancelledError("an earlier part of the table failed");
      }
      offset = previous.end;
    }
    places_[chunk].end = offset + bytes;
    places_[chunk].known->Set();
    return offset;
  }

  /// Called instead of Reserve: the thread that waits for this chunk's end stops.
  void Abandon(uint64_t chunk) {
    places_[chunk].abandoned = true;
    places_[chunk].known->Set();
  }

  uint64_t bytes() const { return places_.empty() ? 0 : places_.back().end; }

 private:
  static constexpr int64_t kWaitUs = 600'000'000;
  struct Place {
    std::unique_ptr<fabric::Event> known;  // set after the others are written
    uint64_t end = 0;
    bool abandoned = false;
  };
  fabric::Fabric& fabric_;
  std::vector<Place> places_;
};

class WritingWorker final : public ChunkWorker {
 public:
  WritingWorker(const GeneratedChunks& chunks, const StagedFile& file, ChunkPlaces& places, ChunkRun& run)
      : chunks_(chunks), file_(file), places_(places), run_(run), batch_(chunks.NewBatch()) {}

  absl::Status Run(uint64_t chunk) override {
    if (absl::Status status = run_.Check(chunk); !status.ok()) {
      places_.Abandon(chunk);
      return status;
    }
    chunks_.Fill(chunk, batch_);
    text_.clear();
    AppendTbl(chunks_.table(), batch_, text_);
    NAM_ASSIGN_OR_RETURN(const uint64_t offset, places_.Reserve(chunk, text_.size()));
    NAM_RETURN_IF_ERROR(file_.Write(offset, text_));
    run_.Report(batch_.rows(), chunks_.rows());
    return absl::OkStatus();
  }

 private:
  const GeneratedChunks& chunks_;
  const StagedFile& file_;
  ChunkPlaces& places_;
  ChunkRun& run_;
  partitioner::ColumnBatch batch_;
  std::string text_;
};

absl::StatusOr<WrittenTable> WriteOne(fabric::Fabric& fabric, const Generator& generator, size_t table,
                                      const StagedFile& file, const WorkOptions& options) {
  const GeneratedChunks chunks(generator, table, options);
  ChunkPlaces places(fabric, chunks.count());
  ChunkRun run(fabric, options, chunks.table().schema.name);
  NAM_RETURN_IF_ERROR(
      run.Run(chunks.count(), [&] { return std::make_unique<WritingWorker>(chunks, file, places, run); }));
  NAM_RETURN_IF_ERROR(file.Finish());
  return WrittenTable{table, file.path(), run.rows_done(), places.bytes()};
}

absl::Status Prepare(const Generator& generator, std::span<const size_t> tables, const std::string& directory,
                     bool replace) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrFormat("cannot make directory %s: %s", directory, error.message()));
  }
  if (replace) return absl::OkStatus();
  for (const size_t table : tables) {
    const std::string path = directory + "/" + generator.tables()[table].file_names.front();
    if (std::filesystem::exists(path, error)) {
      return absl::AlreadyExistsError(
          absl::StrFormat("%s is there already; remove it or ask to replace it", path));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<WrittenTable>> WriteTbl(fabric::Fabric& fabric, const Generator& generator,
                                                   std::span<const size_t> tables,
                                                   const std::string& directory,
                                                   const TblWriteOptions& options) {
  NAM_RETURN_IF_ERROR(Validate(options.work));
  NAM_RETURN_IF_ERROR(Prepare(generator, tables, directory, options.replace));
  std::vector<StagedFile> files;
  std::vector<WrittenTable> written;
  for (const size_t table : tables) {
    NAM_ASSIGN_OR_RETURN(StagedFile file,
                         StagedFile::Create(directory, generator.tables()[table].file_names.front()));
    files.push_back(std::move(file));
    NAM_ASSIGN_OR_RETURN(WrittenTable one, WriteOne(fabric, generator, table, files.back(), options.work));
    written.push_back(std::move(one));
  }
  for (StagedFile& file : files) NAM_RETURN_IF_ERROR(file.Publish());
  return written;
}

namespace {

/// The formatting of one column's values, chosen once per batch.
struct ColumnText {
  TypeKind kind;
  int scale;
  const partitioner::ColumnBatch::Column* column;

  void Append(size_t row, std::string& text) const {
    char digits[24];
    switch (kind) {
      case TypeKind::kString:
        text.append(column->strings[row]);
        return;
      case TypeKind::kDate: {
        const CivilDate date = CivilFromDays(column->numbers[row]);
        char* at = WriteDigits(digits, static_cast<uint64_t>(date.year), 4);
        *at++ = '-';
        at = WriteDigits(at, static_cast<uint64_t>(date.month), 2);
        *at++ = '-';
        at = WriteDigits(at, static_cast<uint64_t>(date.day), 2);
        text.append(digits, static_cast<size_t>(at - digits));
        return;
      }
      case TypeKind::kDecimal:
        AppendDecimal(column->numbers[row], text);
        return;
      default:
        text.append(digits,
                    static_cast<size_t>(
                        std::to_chars(digits, digits + sizeof digits, column->numbers[row]).ptr - digits));
    }
  }

  void AppendDecimal(int64_t number, std::string& text) const {
    char digits[24];
    uint64_t rest = number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    char* at = digits + sizeof digits;
    for (int i = 0; i < scale; ++i, rest /= 10) *--at = static_cast<char>('0' + rest % 10);
    if (scale > 0) *--at = '.';
    do {
      *--at = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    if (number < 0) *--at = '-';
    text.append(at, static_cast<size_t>(digits + sizeof digits - at));
  }
};

}  // namespace

void AppendTbl(const Table& table, const partitioner::ColumnBatch& batch, std::string& text) {
  const std::vector<partitioner::ColumnSchema>& columns = table.schema.columns;
  NAM_CHECK(batch.column_count() == columns.size(), "batch of another table");
  std::vector<ColumnText> writers;
  for (size_t i = 0; i < columns.size(); ++i)
    writers.push_back({columns[i].type.kind, columns[i].type.scale, &batch.column(i)});
  for (size_t row = 0; row < batch.rows(); ++row) {
    for (const ColumnText& writer : writers) {
      writer.Append(row, text);
      text.push_back('|');
    }
    text.push_back('\n');
  }
}

}  // namespace nam::dataset
