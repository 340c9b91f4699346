#include "storage/record_block.h"

namespace nam::storage {

uint32_t VictimSlot(std::span<const uint64_t> version_words, uint64_t newest) {
  uint32_t victim = 0;
  uint64_t oldest = ~uint64_t{0};
  for (uint32_t slot = 0; slot < version_words.size(); ++slot) {
    const uint64_t timestamp = VersionWord(version_words[slot]).timestamp();
    if (timestamp > newest) return slot;
    if (timestamp < oldest) {
      oldest = timestamp;
      victim = slot;
    }
  }
  return victim;
}

VersionChoice ChooseVersion(RecordHeader before, std::span<const uint64_t> version_words, RecordHeader after,
                            uint64_t snapshot) {
  using Outcome = VersionChoice::Outcome;
  if (before.timestamp() != after.timestamp()) return {.outcome = Outcome::kMoved};
  const uint64_t newest = before.timestamp();
  if (newest == 0) return {.outcome = Outcome::kNone};
  // While the timestamp stays, all that can change is the victim, and only under a lock.
  const bool quiet = before == after && !before.locked();
  if (quiet && newest <= snapshot) [[likely]] {
    for (uint32_t slot = 0; slot < version_words.size(); ++slot) {
      const VersionWord version(version_words[slot]);
      if (version.timestamp() == newest) return {Outcome::kVersion, slot, version};
    }
  }
  const uint32_t victim = VictimSlot(version_words, newest);
  const uint64_t limit = snapshot < newest ? snapshot : newest;

  VersionChoice choice;
  bool complete = false;  // nothing older than what is there was ever replaced
  for (uint32_t slot = 0; slot < version_words.size(); ++slot) {
    const VersionWord version(version_words[slot]);
    if (version.timestamp() == 0 || version.timestamp() > newest) continue;
    complete = complete || version.first();
    if (version.timestamp() > limit || version.timestamp() <= choice.version.timestamp()) continue;
    choice = {Outcome::kVersion, slot, version};
  }
  if (choice.outcome == Outcome::kVersion) {
    if (choice.slot == victim && !quiet) return {.outcome = Outcome::kMoved};
    return choice;
  }
  return {.outcome = complete ? Outcome::kNone : Outcome::kTooOld};
}

}  // namespace nam::storage
