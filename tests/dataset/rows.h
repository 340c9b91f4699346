#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "dataset/chunk_run.h"
#include "dataset/generator.h"
#include "dataset/tbl_writer.h"
#include "gtest/gtest.h"

namespace nam::dataset {

/// A table's rows as dbgen's lines, in the order of the generator.
inline std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline std::string GeneratedText(const Generator& generator, size_t table) {
  partitioner::ColumnBatch batch(generator.tables()[table].schema.columns.size());
  generator.Fill(table, 0, generator.Units(table), batch);
  std::string text;
  AppendTbl(generator.tables()[table], batch, text);
  return text;
}

/// A sink that keeps everything, from any thread.
class Collected {
 public:
  /// `table` must outlive this object.
  explicit Collected(const Table& table) : table_(table) {}
  Sink sink() {
    return [this](const partitioner::ColumnBatch& batch) {
      std::string text;
      AppendTbl(table_, batch, text);
      const MutexLock lock(mutex_);
      text_ += text;
      ++batches_;
      return absl::OkStatus();
    };
  }
  std::vector<std::string> sorted() const {
    std::vector<std::string> lines = Lines(text_);
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  int batches() const { return batches_; }

 private:
  const Table& table_;
  Mutex mutex_;
  std::string text_;
  int batches_ = 0;
};

inline std::vector<std::string> Sorted(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// A new directory, removed when the test ends.
class TestDirectory {
 public:
  TestDirectory() {
    std::string pattern = ::testing::TempDir() + "/dataset.XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TestDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(path_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename());
    return Sorted(std::move(names));
  }

 private:
  std::string path_;
};

}  // namespace nam::dataset
