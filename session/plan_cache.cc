#include "session/plan_cache.h"

#include <algorithm>
#include <utility>

namespace nam::session {

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

void PlanCache::Keep(const std::string& text, const SessionSettings& settings, Entry entry) {
  Under(settings);
  if (text.size() > kTextBytesMax) return;
  if (entries_.size() >= kMost && !entries_.contains(text)) {
    entries_.erase(std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return a.second.used < b.second.used;
    }));
  }
  entries_.insert_or_assign(text, Kept{std::move(entry), ++uses_});
}

}  // namespace nam::session
