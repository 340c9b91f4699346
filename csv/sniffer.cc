#include "csv/sniffer.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "csv/header.h"
#include "csv/portion_reader.h"
#include "csv/sample.h"
#include "types/sql_error.h"

namespace nam::csv {
namespace {

/// All samples of many files together are at most so large, but each has its least.
constexpr size_t kSampledBytes = PortionReader::kPortionBytes, kSampledBytesOfAll = 16 * kSampledBytes,
                 kLeastSampledBytes = 16 << 10;

absl::Status CheckReadableTwice(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0 || S_ISREG(about.st_mode) || S_ISDIR(about.st_mode))
    return absl::OkStatus();
  return UserError(sqlstate::kWrongObjectType,
                   absl::StrCat(Quote(path), " is no file that can be read twice"), -1,
                   "CREATE the TABLE with its columns, then COPY");
}

struct NamedSample {
  Sample sample;
  FileVersion version;
  bool header = false;
  std::vector<std::string> names, written;
};

/// Puts the files' columns together.
class Columns {
 public:
  Columns(const std::vector<NamedSample>& samples, const SniffOptions& options)
      : samples_(samples), options_(options) {}

  /// By the name that all files have for it. The first file's columns come first.
  absl::Status ByName() {
    for (const NamedSample& one : samples_) {
      std::vector<int>& columns = places_.emplace_back();
      const bool first = first_ == nullptr && one.sample.rows > 0;
      if (first) first_ = &one;
      for (size_t c = 0; c < one.names.size(); ++c) {
        const std::string& name = one.names[c];
        const auto found = std::find_if(columns_.begin(), columns_.end(),
                                        [&](const SniffedColumn& column) { return column.name == name; });
        columns.push_back(static_cast<int>(found - columns_.begin()));
        if (found != columns_.end()) continue;
        if (!first && !options_.union_by_name) return Unlike(one, "has a column ", name, "has not");
        columns_.push_back({name, one.written[c], FieldForm::kNone});
      }
      if (one.sample.rows > 0 && !options_.union_by_name) NAM_RETURN_IF_ERROR(CheckHasAll(one));
    }
    return absl::OkStatus();
  }

  /// By its place in the row. The names are those of the first file with a header.
  absl::Status ByPlace() {
    const NamedSample* named = nullptr;
    for (const NamedSample& one : samples_) {
      if (one.sample.rows == 0) continue;
      if (first_ == nullptr) first_ = &one;
      if (one.sample.width() != first_->sample.width()) return OfOtherWidth(one);
      if (!one.header) continue;
      if (named == nullptr) named = &one;
      if (one.names != named->names) {
        return UserError(sqlstate::kBadCopyFormat,
                         absl::StrCat(one.sample.name, " has other names than ", named->sample.name,
                                      ", or in another order, and a further file has none"),
                         -1, "say header => true or false if it is the same in all files");
      }
    }
    if (first_ == nullptr) return absl::OkStatus();
    const NamedSample& names = named == nullptr ? *first_ : *named;
    for (size_t c = 0; c < names.names.size(); ++c)
      columns_.push_back({names.names[c], names.written[c], FieldForm::kNone});
    for (const NamedSample& one : samples_) {
      places_.emplace_back(one.sample.width());
      std::iota(places_.back().begin(), places_.back().end(), 0);
    }
    return absl::OkStatus();
  }

  SniffedFiles Take(const std::vector<std::string>& paths) {
    std::vector<FieldForms> forms(columns_.size());
    SniffedFiles out;
    for (size_t f = 0; f < samples_.size(); ++f) {
      const std::vector<FieldForms> own = samples_[f].sample.Forms(samples_[f].header);
      for (size_t c = 0; c < own.size(); ++c) forms[static_cast<size_t>(places_[f][c])].Add(own[c]);
      out.files.push_back({paths[f], samples_[f].version, samples_[f].header, std::move(places_[f])});
    }
    for (size_t c = 0; c < forms.size(); ++c) columns_[c].form = forms[c].First();
    out.columns = std::move(columns_);
    return out;
  }

 private:
  absl::Status CheckHasAll(const NamedSample& one) const {
    for (const std::string& name : first_->names) {
      if (std::find(one.names.begin(), one.names.end(), name) == one.names.end())
        return Unlike(one, "has no column ", name, "has");
    }
    return absl::OkStatus();
  }

  absl::Status Unlike(const NamedSample& one, const char* what, const std::string& name,
                      const char* first) const {
    return UserError(
        sqlstate::kBadCopyFormat,
        absl::StrCat(one.sample.name, " ", what, Quote(name), ", which ", first_->sample.name, " ", first),
        -1,
        "union_by_name => true makes NULLs of columns that a file has not; header => false if "
        "no first row has names");
  }

  absl::Status OfOtherWidth(const NamedSample& one) const {
    return UserError(sqlstate::kBadCopyFormat,
                     absl::StrCat(one.sample.name, " has rows of ", one.sample.width(), " fields, ",
                                  first_->sample.name, " of ", first_->sample.width()),
                     -1, "files without names in their first rows have the same columns");
  }

  const std::vector<NamedSample>& samples_;
  const SniffOptions& options_;
  const NamedSample* first_ = nullptr;  // that has a row
  std::vector<SniffedColumn> columns_;
  std::vector<std::vector<int>> places_;  // by sample and field
};

absl::Status CheckAnyRow(const std::vector<NamedSample>& samples) {
  for (const NamedSample& one : samples) {
    if (one.sample.rows > 0) return absl::OkStatus();
  }
  return UserError(sqlstate::kBadCopyFormat,
                   absl::StrCat(samples[0].sample.name, " has no row: its columns cannot be told"), -1,
                   "CREATE the TABLE with its columns, then COPY");
}

}  // namespace

absl::StatusOr<SniffedFiles> Sniff(const std::vector<std::string>& paths, const SniffOptions& options,
                                   Dialect& dialect) {
  const size_t bytes = options.sample_rows > 0
                           ? kLeastSampledBytes
                           : std::clamp(kSampledBytesOfAll / std::max<size_t>(paths.size(), 1),
                                        kLeastSampledBytes, kSampledBytes);
  std::vector<NamedSample> samples;
  bool chosen = false, all_named = true, any_named = false;
  for (const std::string& path : paths) {
    NAM_RETURN_IF_ERROR(CheckReadableTwice(path));
    NamedSample& one = samples.emplace_back();
    one.version = VersionOf(path);
    if (!chosen) dialect = ChooseDialect(path, dialect, options.delimiter_given, options.escape_given);
    NAM_ASSIGN_OR_RETURN(one.sample, ReadSample(path, dialect, bytes, options.sample_rows));
    if (one.sample.rows == 0) continue;
    chosen = true;
    one.header = options.header.value_or(HasHeader(one.sample));
    NAM_ASSIGN_OR_RETURN(one.names, NamesOf(one.sample, one.header));
    one.written = WrittenNamesOf(one.sample, one.header);
    all_named = all_named && one.header;
    any_named = any_named || one.header;
  }
  NAM_RETURN_IF_ERROR(CheckAnyRow(samples));
  Columns columns(samples, options);
  const bool by_name = all_named || (options.union_by_name && !any_named);
  NAM_RETURN_IF_ERROR(by_name ? columns.ByName() : columns.ByPlace());
  return columns.Take(paths);
}

}  // namespace nam::csv
