#include "cli/backup_commands.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "backup/backup.h"
#include "backup/restore.h"
#include "base/clock.h"
#include "base/interruption.h"
#include "cli/interrupts.h"
#include "fabric/fabric.h"
#include "localcluster/data_layout.h"
#include "localcluster/state_directory.h"
#include "terminal/exit_codes.h"
#include "terminal/progress_line.h"
#include "terminal/units.h"
#include "terminal/version.h"

namespace nam::cli {
namespace {

using backup::EntryKind;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr int64_t kShownEveryNs = 200'000'000;

/// The line on a terminal, and how long the work has taken.
class Work {
 public:
  Work() : start_ns_(RealClock().NowNs()) {}

  double seconds() const { return static_cast<double>(RealClock().NowNs() - start_ns_) / 1e9; }
  backup::OnProgress OnProgress() {
    if (!line_.shown()) return {};
    return [this](std::string_view doing, uint64_t done, uint64_t expected) { Show(doing, done, expected); };
  }
  void End() { line_.Clear(); }

 private:
  void Show(std::string_view doing, uint64_t done, uint64_t expected) {
    const int64_t now_ns = RealClock().NowNs();
    if (now_ns - shown_ns_ < kShownEveryNs) return;
    shown_ns_ = now_ns;
    std::string text = absl::StrCat(std::string(doing), ": ", FormatBytes(done));
    const double bytes_per_s = static_cast<double>(done) / seconds();
    if (expected > 0)
      absl::StrAppend(&text, " of ", FormatBytes(expected), " (", std::min(done, expected) * 100 / expected,
                      " %)");
    absl::StrAppend(&text, ", ", FormatBytes(static_cast<uint64_t>(bytes_per_s)), "/s");
    if (expected > done && done > 0) {
      const double left_s = static_cast<double>(expected - done) / bytes_per_s;
      absl::StrAppend(&text, ", ", FormatDuration(std::lround(left_s)), " left");
    }
    line_.Show(text);
  }

  const int64_t start_ns_;
  int64_t shown_ns_ = 0;
  ProgressLine line_;
};

/// `3 columnar tables (1,000 rows), 1 record table (5 rows) and 2 views`.
std::string TablesText(const backup::Manifest& manifest) {
  std::vector<std::string> parts;
  const auto add = [&](EntryKind kind, const char* one, bool has_rows) {
    const uint64_t count = manifest.CountOf(kind);
    if (count == 0) return;
    uint64_t rows = 0;
    for (const backup::Entry& entry : manifest.entries) rows += entry.kind == kind ? entry.rows : 0;
    parts.push_back(has_rows ? absl::StrCat(CountOf(count, one), " (", FormatCount(rows), " rows)")
                             : CountOf(count, one));
  };
  add(EntryKind::kColumnar, "columnar table", true);
  add(EntryKind::kRecord, "record table", true);
  add(EntryKind::kView, "view", false);
  add(EntryKind::kSchema, "schema", false);
  if (parts.empty()) return "no table";
  const std::string last = parts.back();
  parts.pop_back();
  return parts.empty() ? last : absl::StrCat(absl::StrJoin(parts, ", "), " and ", last);
}

/// `1.5 GiB in 2.1 s (730 MiB/s)`.
std::string RateText(uint64_t bytes, double seconds) {
  return absl::StrFormat("%s in %.1f s (%s/s)", FormatBytes(bytes), seconds,
                         FormatBytes(static_cast<uint64_t>(static_cast<double>(bytes) / seconds)));
}

int ReportEnd(const absl::Status& status, const char* nothing) {
  if (!absl::IsCancelled(status)) return ReportFailure(status);
  return ReportFailure(absl::CancelledError(absl::StrCat("cancelled; ", nothing)));
}

/// As much memory as the largest of them had, as an option: it leaves out the first page.
std::string MemoryOption(const backup::Manifest& manifest) {
  uint64_t bytes = 0;
  for (const backup::MemoryServer& server : manifest.memory_servers)
    bytes = std::max(bytes, server.memory_bytes);
  return absl::StrCat((bytes + kMiB) / kMiB, "MiB");
}

void SayWhatIsRestored(const RestoreCommandOptions& options, const backup::Manifest& manifest,
                       const std::string& data_directory, double seconds) {
  std::printf("Restored %s of the cluster `%s` as it was at %s, %s, into %s.\n", TablesText(manifest).c_str(),
              manifest.cluster.c_str(), manifest.made.c_str(), RateText(manifest.bytes(), seconds).c_str(),
              data_directory.c_str());
  const std::string memory = MemoryOption(manifest);
  std::printf("It needs %s of %s or more%s, as before.\n",
              CountOf(manifest.memory_servers.size(), "memory server").c_str(), memory.c_str(),
              manifest.memory_servers.size() == 1 ? "" : " each");
  std::string next = "nam up";
  if (!options.state_dir.empty()) absl::StrAppend(&next, " --state-dir=", options.state_dir);
  if (!options.data_directory.empty()) absl::StrAppend(&next, " --data-dir=", options.data_directory);
  const std::string& fabric = options.fabric.empty() ? manifest.fabric : options.fabric;
  if (fabric != fabric::KindName(fabric::Kind::kShm)) absl::StrAppend(&next, " --fabric=", fabric);
  std::printf("Next: %s --memory=%s\n", next.c_str(), memory.c_str());
}

}  // namespace

int RunBackup(const BackupCommandOptions& options) {
  Interrupts interrupts;
  const CancelFlag flag(interrupts);
  const auto attachment = AttachToCluster(options.cluster);
  if (!attachment.ok()) return ReportNoConnection(attachment.status());
  const Interruption interruption(&flag.cancelled());
  Work work;
  const auto manifest = backup::WriteBackup(**attachment, {.directory = options.directory,
                                                           .program = VersionText(),
                                                           .wait_us = std::llround(options.wait_s * 1e6),
                                                           .progress = work.OnProgress()});
  work.End();
  if (!manifest.ok()) return ReportEnd(manifest.status(), "nothing was backed up");
  std::printf("Backed up %s into %s: %s.\n", TablesText(*manifest).c_str(), options.directory.c_str(),
              RateText(manifest->bytes(), work.seconds()).c_str());
  return kExitOk;
}

int RunRestore(const RestoreCommandOptions& options) {
  if (!options.fabric.empty()) {
    if (const auto kind = fabric::ParseRealKind(options.fabric); !kind.ok()) return Refuse(kind.status());
  }
  Interrupts interrupts;
  const CancelFlag flag(interrupts);
  const Interruption interruption(&flag.cancelled());
  // What the backup is wrong about is told before a state directory is made.
  if (const auto manifest = backup::ReadManifest(options.directory); !manifest.ok())
    return ReportFailure(manifest.status());
  const std::string state = options.state_dir.empty() ? DefaultStateDirectory() : options.state_dir;
  const std::string data = DataDirectoryOf(state, options.data_directory);
  if (data.empty()) {
    return Refuse(absl::InvalidArgumentError(
        "a restored cluster is in a data directory; name one by --data-dir, or leave that out"));
  }
  if (const absl::Status made = MakeParentsOf(data); !made.ok()) return ReportFailure(made);
  const auto directory = StateDirectory::Create(state);
  if (!directory.ok()) return Refuse(directory.status());
  const auto lock = directory->Lock();
  if (absl::IsAlreadyExists(lock.status())) {
    return ReportFailure(absl::FailedPreconditionError(
        absl::StrCat(std::string(lock.status().message()),
                     "; stop it by `nam down`, or restore beside it with another --state-dir")));
  }
  if (!lock.ok()) return ReportFailure(lock.status());
  Work work;
  const auto manifest = backup::Restore({.directory = options.directory,
                                         .data_directory = data,
                                         .fabric = options.fabric,
                                         .progress = work.OnProgress()});
  work.End();
  if (absl::IsAlreadyExists(manifest.status())) {
    return ReportFailure(absl::FailedPreconditionError(
        absl::StrCat(std::string(manifest.status().message()),
                     ": a restore does not touch what is there. Move it away, or name another --state-dir or "
                     "--data-dir")));
  }
  if (!manifest.ok()) return ReportEnd(manifest.status(), "nothing was restored");
  SayWhatIsRestored(options, *manifest, data, work.seconds());
  return kExitOk;
}

}  // namespace nam::cli
