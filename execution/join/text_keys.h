#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "execution/column.h"

namespace nam::execution {

/// Text keys of a join as numbers: the entries of one dictionary of the build side. Texts of other
/// dictionaries are translated entry by entry, once for each dictionary, so that a probe reads an array.
///
///     probe side's entry 0 1 2 3 …  →  build side's entry 4 kNoEntry 0 9 …
///
/// Where one side is char(n) and the other varchar(n), blanks at the end are ignored: then entries that
/// differ by them alone are one key, the first of them. Shared by the threads of a stage.
class TextKeys {
 public:
  static constexpr uint32_t kNoEntry = UINT32_MAX;

  /// `build` has a dictionary.
  TextKeys(const CodeMeaning& build, bool ignores_blanks);

  /// Maps entries of the dictionary of `meaning` to entries of the build side's. Empty: they are the same.
  /// Made at the first call for a dictionary, for which other threads then wait; valid for the lifetime of
  /// this.
  const std::vector<uint32_t>& Of(const CodeMeaning& meaning) const;
  /// Maps entries of the build side to their canonical ones. Empty: each is its own.
  const std::vector<uint32_t>& canonical() const { return canonical_; }
  /// The entry of any text; kNoEntry if the build side cannot have it.
  uint32_t EntryOf(std::string_view text) const;

  uint32_t entries() const { return static_cast<uint32_t>(build_->size()); }
  uint64_t dictionary_id() const { return build_id_; }
  bool ignores_blanks() const { return ignores_blanks_; }

 private:
  std::vector<uint32_t> Translate(const storage::Dictionary& from) const;

  const std::shared_ptr<const storage::Dictionary> build_;
  const uint64_t build_id_;
  const bool ignores_blanks_;
  std::vector<uint32_t> canonical_;
  absl::flat_hash_map<std::string_view, uint32_t> first_;  // without blanks; only if these are ignored
  mutable Mutex mutex_;
  mutable absl::flat_hash_map<uint64_t, std::unique_ptr<const std::vector<uint32_t>>> translations_
      ABSL_GUARDED_BY(mutex_);
};

/// One thread's cache of translations: asks for one only when the dictionary changes.
class TextTranslation {
 public:
  explicit TextTranslation(const TextKeys& keys) : keys_(keys) {}
  /// As TextKeys::Of.
  const std::vector<uint32_t>& Of(const CodeMeaning& meaning) {
    if (meaning.dictionary_id != id_) {
      entries_ = &keys_.Of(meaning);
      id_ = meaning.dictionary_id;
    }
    return *entries_;
  }
  const TextKeys& keys() const { return keys_; }

 private:
  const TextKeys& keys_;
  uint64_t id_ = 0;
  const std::vector<uint32_t>* entries_ = nullptr;
};

}  // namespace nam::execution
