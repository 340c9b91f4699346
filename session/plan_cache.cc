#include "session/plan_cache.h"

#include <algorithm>
#include <utility>

namespace nam::session {
namespace {

/// The size of a plan's part that grows with its tables.
size_t PiecesOf(const TreeRun::Start& start) {
  size_t pieces = 0;
  for (const PlacedStage& stage : start.stages) {
    for (const ServerReport& server : stage.servers) pieces += server.share.pieces.size();
  }
  return pieces;
}

}  // namespace

void PlanCache::Under(const SessionSettings& settings) {
  if (settings == settings_) return;
  Clear();
  settings_ = settings;
}

const PlanCache::Entry* PlanCache::Find(const std::string& text, const SessionSettings& settings) {
  Under(settings);
  const auto found = entries_.find(text);
  if (found == entries_.end()) return nullptr;
  found->second.used = ++uses_;
  return &found->second.entry;
}

void PlanCache::Forget(Entries::iterator at) {
  pieces_ -= at->second.pieces;
  entries_.erase(at);
}

void PlanCache::Keep(const std::string& text, const SessionSettings& settings, Entry entry) {
  Under(settings);
  const size_t pieces = PiecesOf(entry.start);
  if (text.size() > kTextBytesMax || pieces > kPiecesMax) return;
  if (const auto former = entries_.find(text); former != entries_.end()) Forget(former);
  while (entries_.size() >= kMost || pieces_ + pieces > kPiecesMax) {
    Forget(std::min_element(entries_.begin(), entries_.end(),
                            [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  entries_.emplace(text, Kept{std::move(entry), pieces, ++uses_});
  pieces_ += pieces;
}

void PlanCache::Clear() {
  entries_.clear();
  pieces_ = 0;
}

}  // namespace nam::session
