#include "session/queried_files.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "session/file_rows.h"

namespace nam::session {
namespace {

namespace lg = plan::logical;

/// The session takes in so many rows of a table sooner than files are loaded.
constexpr uint64_t kFewRowsOfTables = 20'000;

/// What is below a node of a tree.
struct Scans {
  std::vector<lg::Node*> files;
  uint64_t table_rows = 0;  // of the largest table
};

/// Adds to `joined` the scans of files that a join brings together with a table of more rows.
Scans ScansBelow(lg::Node& node, std::vector<lg::Node*>& joined) {
  Scans all;
  if (const auto* table = node.As<lg::Scan>(); table != nullptr) all.table_rows = table->table->rows();
  if (node.As<lg::FileScan>() != nullptr) all.files.push_back(&node);
  std::vector<Scans> inputs;
  for (const lg::NodePtr& input : node.inputs) inputs.push_back(ScansBelow(*input, joined));
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t other = 0; other < inputs.size() && node.As<lg::Join>() != nullptr; ++other) {
      for (lg::Node* const scan : inputs[i].files) {
        const uint64_t rows = std::max<uint64_t>(scan->As<lg::FileScan>()->table->rows(), kFewRowsOfTables);
        if (other != i && inputs[other].table_rows > rows) joined.push_back(scan);
      }
    }
    all.table_rows = std::max(all.table_rows, inputs[i].table_rows);
    std::ranges::move(inputs[i].files, std::back_inserter(all.files));
  }
  return all;
}

}  // namespace

uint32_t QueriedFiles::Add(const sql::CopyStatement& files) {
  files_.push_back({files, {}});
  return static_cast<uint32_t>(files_.size()) - 1;
}

absl::StatusOr<std::unique_ptr<execution::Source>> QueriedFiles::Read(const plan::FileSource& source,
                                                                      const plan::Schema& rows, int tasks) {
  NAM_CHECK(source.files < files_.size(), "files of the statement that runs");
  return std::make_unique<FileRows>(FileRows::Options{.statement = files_[source.files].statement,
                                                      .columns = source.columns,
                                                      .rows = rows,
                                                      .tasks = tasks,
                                                      .fabric = fabric_,
                                                      .cancel = cancel_});
}

absl::Status QueriedFiles::LoadForJoins(lg::Node& root, const Report& report) {
  std::vector<lg::Node*> joined;
  ScansBelow(root, joined);
  for (lg::Node* const scan : joined) NAM_RETURN_IF_ERROR(Load(*scan, report));
  return absl::OkStatus();
}

absl::StatusOr<bool> QueriedFiles::LoadAll(lg::Node& root, const Report& report) {
  std::vector<lg::Node*> joined;
  const Scans scans = ScansBelow(root, joined);
  for (lg::Node* const scan : scans.files) NAM_RETURN_IF_ERROR(Load(*scan, report));
  return !scans.files.empty();
}

absl::Status QueriedFiles::Load(lg::Node& scan, const Report& report) {
  const auto* const files = scan.As<lg::FileScan>();
  if (files == nullptr) return absl::OkStatus();  // it is loaded: two joins want it
  Entry& entry = files_[files->files];
  if (entry.loaded.table == nullptr) {
    NAM_ASSIGN_OR_RETURN(entry.loaded, columnar_.LoadUncommitted(entry.statement, report));
  }
  scan.op = lg::Scan{files->relation, entry.loaded.table};
  return absl::OkStatus();
}

}  // namespace nam::session
