#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "execution/expression/dictionary_memo.h"
#include "execution/expression/node.h"

namespace nam::execution {

namespace {

/// Texts share blocks, so that one request to the share pays for many. Longer ones have a block of their own.
constexpr size_t kTextBlockBytes = 16 << 10;

}  // namespace

DictionaryMemo::DictionaryMemo(const Key& key, Physical physical, MemoShare* share)
    : key_(key), physical_(physical), share_(share) {
  const size_t places = key.codes + 1;
  const size_t width = physical == Physical::kTruth ? 0 : WidthOf(physical);
  if (!Reserve(places * (1 + width))) return;
  states_.reset(static_cast<uint8_t*>(std::calloc(places, 1)));
  NAM_CHECK(states_ != nullptr, "no memory for a memo");
  if (width == 0) return;
  values_.reset(static_cast<std::byte*>(std::calloc(places, width)));
  NAM_CHECK(values_ != nullptr, "no memory for a memo");
}

DictionaryMemo::~DictionaryMemo() {
  states_.reset();
  values_.reset();
  texts_.clear();
  if (share_ != nullptr) share_->Release(taken_bytes_);
}

bool DictionaryMemo::Reserve(uint64_t bytes) {
  if (share_ != nullptr && !share_->Reserve(bytes)) return false;
  taken_bytes_ += bytes;
  return true;
}

uint32_t DictionaryMemo::ReadTruths(const uint32_t* codes, Selection rows, uint8_t* truth,
                                    uint32_t* missing) const {
  bool all = true;
  ForEach(rows, [&](uint32_t p) {
    const uint8_t state = State(codes[p]).load(std::memory_order_relaxed);
    truth[p] = static_cast<uint8_t>(state - 1);
    all &= state != kMissing;
  });
  if (all) return 0;
  uint32_t n = 0;
  ForEach(rows, [&](uint32_t p) {
    missing[n] = p;
    n += truth[p] == static_cast<uint8_t>(kMissing - 1);
  });
  return n;
}

template <typename T>
uint32_t DictionaryMemo::ReadValues(const uint32_t* codes, Selection rows, T* out, uint8_t* nulls,
                                    uint32_t* missing) const {
  const T* const values = reinterpret_cast<const T*>(values_.get());
  uint32_t n = 0;
  ForEach(rows, [&](uint32_t p) {
    const uint8_t state = State(codes[p]).load(std::memory_order_acquire);
    if (state >= kHeld) {
      out[p] = values[codes[p]];
      nulls[p] = state == kHeldNull;
    } else {
      missing[n++] = p;
    }
  });
  return n;
}

uint32_t DictionaryMemo::Read(const uint32_t* codes, Selection rows, Vector& out, uint32_t* missing) const {
  switch (physical_) {
    case Physical::kTruth:
      return ReadTruths(codes, rows, out.truth, missing);
    case Physical::kInt64:
      return ReadValues(codes, rows, out.narrow, out.nulls, missing);
    case Physical::kText:
      return ReadValues(codes, rows, out.text, out.nulls, missing);
    default:
      return ReadValues(codes, rows, out.wide, out.nulls, missing);
  }
}

std::optional<std::string_view> DictionaryMemo::Keep(std::string_view text) {
  if (text.empty()) return text;
  const MutexLock lock(mutex_);
  if (text.size() > free_bytes_) {
    const size_t bytes = std::max(text.size(), kTextBlockBytes);
    if (!Reserve(bytes)) return std::nullopt;
    char* const block = texts_.emplace_back(std::make_unique_for_overwrite<char[]>(bytes)).get();
    if (bytes > kTextBlockBytes) {
      std::memcpy(block, text.data(), text.size());
      return std::string_view(block, text.size());
    }
    free_ = block;
    free_bytes_ = bytes;
  }
  std::memcpy(free_, text.data(), text.size());
  const std::string_view kept(free_, text.size());
  free_ += text.size();
  free_bytes_ -= text.size();
  return kept;
}

void DictionaryMemo::Write(const uint32_t* codes, Selection rows, const Vector& values) {
  ForEach(rows, [&](uint32_t p) {
    const uint32_t place = codes[p];
    if (physical_ == Physical::kTruth) {
      State(place).store(static_cast<uint8_t>(values.truth[p] + 1), std::memory_order_relaxed);
      return;
    }
    uint8_t expected = kMissing;
    if (!State(place).compare_exchange_strong(expected, kBusy, std::memory_order_acquire)) return;
    const bool null = values.null(p);
    if (!null && physical_ == Physical::kInt64) {
      reinterpret_cast<int64_t*>(values_.get())[place] = values.narrow[p];
    } else if (!null && physical_ == Physical::kText) {
      const std::optional<std::string_view> kept = Keep(values.text[p]);
      if (!kept.has_value()) return State(place).store(kMissing, std::memory_order_relaxed);
      reinterpret_cast<std::string_view*>(values_.get())[place] = *kept;
    } else if (!null) {
      reinterpret_cast<__int128*>(values_.get())[place] = values.number(p);
    }
    State(place).store(null ? kHeldNull : kHeld, std::memory_order_release);
  });
}

namespace {

/// A memo of more codes is not worth its memory.
constexpr uint64_t kMostCodes = 1 << 22;

/// An expression over one column. Codes are looked up; positions with a code that has not occurred before are
/// evaluated. Other columns are evaluated row by row.
class DictionaryMap final : public Node {
 public:
  DictionaryMap(uint32_t slot, Physical physical, const plan::Bounds& bounds, NodePtr general,
                MemoShare* memos)
      : Node(physical, bounds, Children(std::move(general))), slot_(slot), share_(memos) {}
  Needs needs() const override {
    return {.value_bytes = WidthOf(physical()),
            .nulls = physical() != Physical::kTruth,
            .positions = 2,
            .while_children_run = true,
            .hands_on = true};
  }

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Column& column = chunk.column(slot_);
    const CodeMeaning* const meaning = MeaningOf(column);
    if (meaning == nullptr || !Fits(*meaning)) return child(0).Evaluate(frame, chunk, rows);
    Register& at = At(frame);
    DictionaryMemo& memo = MemoOf(*meaning, at);
    if (!memo.holds()) return child(0).Evaluate(frame, chunk, rows);
    Vector& out = Out(at);
    if (physical() != Physical::kTruth) out.nulls = at.nulls;
    uint32_t *const codes = at.positions[0], *const missing = at.positions[1];
    LoadCodes(column, memo.null_place(), rows, codes);
    const Selection rest{missing, memo.Read(codes, rows, out, missing)};
    if (rest.count == 0) return &out;
    const Vector* values = child(0).Evaluate(frame, chunk, rest);
    if (values == nullptr) return nullptr;
    Copy(*values, rest, out);
    memo.Write(codes, rest, *values);
    return &out;
  }

 private:
  static bool Fits(const CodeMeaning& meaning) {
    return meaning.codes != 0 && meaning.codes <= kMostCodes &&
           (meaning.dictionary == nullptr || meaning.dictionary_id != 0);
  }

  DictionaryMemo& MemoOf(const CodeMeaning& meaning, Register& at) const {
    const DictionaryMemo::Key key = DictionaryMemo::KeyOf(meaning);
    if (at.memo != nullptr && at.memo->key() == key) return *at.memo;
    const MutexLock lock(mutex_);
    for (const auto& memo : memos_) {
      if (memo->key() == key) return *(at.memo = memo.get());
    }
    memos_.push_back(std::make_unique<DictionaryMemo>(key, physical(), share_));
    return *(at.memo = memos_.back().get());
  }

  void Copy(const Vector& from, Selection rows, Vector& out) const {
    switch (physical()) {
      case Physical::kTruth:
        return ForEach(rows, [&](uint32_t p) { out.truth[p] = from.truth[p]; });
      case Physical::kInt64:
        ForEach(rows, [&](uint32_t p) { out.narrow[p] = from.narrow[p]; });
        break;
      case Physical::kText:
        ForEach(rows, [&](uint32_t p) { out.text[p] = from.text[p]; });
        break;
      default:
        ForEach(rows, [&](uint32_t p) { out.wide[p] = from.wide[p]; });
    }
    ForEach(rows, [&](uint32_t p) { out.nulls[p] = from.null(p); });
  }

  const uint32_t slot_;
  MemoShare* const share_;
  mutable Mutex mutex_;  // locked once for a thread and meaning
  mutable std::vector<std::unique_ptr<DictionaryMemo>> memos_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

NodePtr MakeDictionaryMap(uint32_t slot, NodePtr general, MemoShare* memos) {
  const Physical physical = general->physical();
  const plan::Bounds bounds = general->bounds();
  return std::make_unique<DictionaryMap>(slot, physical, bounds, std::move(general), memos);
}

}  // namespace nam::execution
