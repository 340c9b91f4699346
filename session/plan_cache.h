#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "proto/table.pb.h"
#include "session/settings.h"
#include "session/tree_run.h"

namespace nam::session {

/// Plans of queries that this session has run, by the text of the statement: a repeated one is neither parsed
/// nor bound nor planned. Constants are part of the text, so a plan fits its own values.
///
/// A plan depends on the text, the settings, the tables and the compute servers. Tables and servers are of
/// one version of the catalog, which the caller confirms before the plan runs. Not for queries that read
/// record tables (their plan has rows that their transaction has found) or that depend on the time.
///
/// Evicts the least recently used plans. One thread.
class PlanCache {
 public:
  static constexpr size_t kMost = 128;             // plans
  static constexpr size_t kPiecesMax = 1 << 20;    // of all driving tables, as assigned to servers
  static constexpr size_t kTextBytesMax = 16'384;  // of a statement; longer ones are planned each time

  struct Entry {
    TreeRun::Start start;
    std::vector<std::shared_ptr<const proto::Table>> tables;  // looked up by the statement
    uint64_t catalog_version = 0;
  };

  /// Null: not known under these settings. Valid until the next call.
  const Entry* Find(const std::string& text, const SessionSettings& settings);
  void Keep(const std::string& text, const SessionSettings& settings, Entry entry);
  void Clear();

 private:
  struct Kept {
    Entry entry;
    size_t pieces = 0;
    uint64_t used = 0;  // the last look-up that found it
  };
  using Entries = std::unordered_map<std::string, Kept>;
  /// Drops plans of other settings.
  void Under(const SessionSettings& settings);
  void Forget(Entries::iterator at);

  SessionSettings settings_;  // of all plans
  Entries entries_;
  size_t pieces_ = 0;  // of all entries
  uint64_t uses_ = 0;
};

}  // namespace nam::session
