#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>

#include "base/mutex.h"
#include "execution/chunk.h"
#include "execution/column.h"
#include "execution/expression/memo_share.h"
#include "execution/expression/vector.h"

namespace nam::execution {

/// The results of an expression over one column for each of its codes: value or NULL, filled lazily by any
/// thread, once for an attempt. Errors are not kept: a code is evaluated only for a row that is selected, in
/// the branch that decides, and then its error is the statement's.
///
///     state    missing ─▶ busy ─▶ held          of values: busy while one thread writes it
///              missing ─────────▶ held          of truths: the state is the value
///
/// Two threads may evaluate one code at the same time; the first result stays. The system supplies zeroed
/// memory: pages without codes are never touched. The share pays for all of it beforehand, and for texts as
/// they come: texts that it cannot pay for stay missing.
class DictionaryMemo {
 public:
  /// The meaning of the codes; equal keys, equal values.
  struct Key {
    uint64_t dictionary_id = 0;
    int64_t base = 0;
    uint64_t codes = 0;
    bool null_code = false;
    bool operator==(const Key&) const = default;
  };
  static Key KeyOf(const CodeMeaning& meaning) {
    return {meaning.dictionary_id, meaning.base, meaning.codes, meaning.null_code};
  }

  /// `share` outlives the memo; nullptr: unlimited.
  DictionaryMemo(const Key& key, Physical physical, MemoShare* share);
  ~DictionaryMemo();
  DictionaryMemo(const DictionaryMemo&) = delete;
  DictionaryMemo& operator=(const DictionaryMemo&) = delete;

  const Key& key() const { return key_; }
  /// False: there was no memory for it. Then it is neither read nor written.
  bool holds() const { return states_ != nullptr; }
  /// The place of the value for kNullRow, after those of the codes.
  uint32_t null_place() const { return static_cast<uint32_t>(key_.codes); }

  /// Writes the values for `codes` (by position) at the selected positions. Positions whose code is missing
  /// go to `missing` instead; returns their number.
  uint32_t Read(const uint32_t* codes, Selection rows, Vector& out, uint32_t* missing) const;
  /// Keeps the values of these positions.
  void Write(const uint32_t* codes, Selection rows, const Vector& values);

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  /// The states of values. A truth's state: kMissing, or 1 + truth.
  static constexpr uint8_t kMissing = 0, kBusy = 1, kHeld = 2, kHeldNull = 3;

  template <typename T>
  uint32_t ReadValues(const uint32_t* codes, Selection rows, T* out, uint8_t* nulls, uint32_t* missing) const;
  uint32_t ReadTruths(const uint32_t* codes, Selection rows, uint8_t* truth, uint32_t* missing) const;
  std::atomic_ref<uint8_t> State(uint32_t place) const {
    return std::atomic_ref<uint8_t>(states_.get()[place]);
  }
  [[nodiscard]] bool Reserve(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// A permanent copy; nullopt if there is no memory for it.
  std::optional<std::string_view> Keep(std::string_view text);

  const Key key_;
  const Physical physical_;
  MemoShare* const share_;
  std::unique_ptr<uint8_t, Free> states_;
  std::unique_ptr<std::byte, Free> values_;
  Mutex mutex_;
  uint64_t taken_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Blocks of them; values point into these.
  std::deque<std::unique_ptr<char[]>> texts_ ABSL_GUARDED_BY(mutex_);
  char* free_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the last block
  size_t free_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace nam::execution
