#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.h"
#include "plan/join_kind.h"
#include "plan/schema.h"
#include "tests/execution/tuples.h"

namespace nam::testing {

using execution::Cell;
using execution::RandomCell;
using execution::Tuple;

inline constexpr plan::JoinKind kAllKinds[] = {
    plan::JoinKind::kInner, plan::JoinKind::kLeft,          plan::JoinKind::kRight,
    plan::JoinKind::kFull,  plan::JoinKind::kSemi,          plan::JoinKind::kAnti,
    plan::JoinKind::kMark,  plan::JoinKind::kNullAwareAnti, plan::JoinKind::kSingle};

enum class KeyForm : uint8_t { kNarrow, kWide, kText, kCharBesideVarchar, kBool };

/// A slot of integers.
plan::Slot Number(__int128 low, __int128 high);

/// The slots of one key on both sides, and keys that occur on both.
struct Key {
  KeyForm form;
  plan::Slot probe, build;

  static Key Of(KeyForm form, RandomStream& random);
  Cell Random(bool of_probe, uint64_t distinct, RandomStream& random) const;
  bool Equal(const Cell& a, const Cell& b) const;
};

/// Two sides: keys, then a number x or y, then a text.
struct Join {
  plan::JoinKind kind = plan::JoinKind::kInner;
  bool null_aware = false;
  bool residual = false;  // x < y
  std::vector<Key> keys;
  plan::Schema probe_schema, build_schema;
  std::vector<Tuple> probe, build;
  std::vector<uint32_t> keep, fetch;

  void AddKey(const Key& key) {
    keys.push_back(key);
    probe_schema.push_back(key.probe);
    build_schema.push_back(key.build);
  }
  void AddPayload() {
    for (plan::Schema* schema : {&probe_schema, &build_schema}) {
      schema->push_back(Number(0, 30));
      schema->push_back({.type = Type::String()});
    }
  }
  uint32_t x() const { return static_cast<uint32_t>(keys.size()); }
  Tuple RandomTuple(bool of_probe, uint64_t distinct, RandomStream& random) const {
    Tuple tuple;
    for (const Key& key : keys) tuple.push_back(key.Random(of_probe, distinct, random));
    tuple.push_back(RandomCell(probe_schema[x()], 31, random));
    tuple.push_back(RandomCell(probe_schema[x() + 1], 50, random));
    return tuple;
  }
  /// Which columns flow: x and y always, since residuals look at them.
  void ChooseColumns(RandomStream& random) {
    for (uint32_t slot = 0; slot < probe_schema.size(); ++slot) {
      if (slot == x() || random.OneIn(2)) keep.push_back(slot);
    }
    fetch = random.OneIn(2) ? std::vector<uint32_t>{0} : std::vector<uint32_t>{0, 1};
  }

  bool Matches(const Tuple& p, const Tuple& b) const {
    for (size_t k = 0; k < keys.size(); ++k) {
      if (!keys[k].Equal(p[k], b[k])) return false;
    }
    return !residual || (!p[x()].null && !b[x()].null && p[x()].number < b[x()].number);
  }
  Tuple Output(const Tuple* p, const Tuple* b) const {
    Tuple out;
    for (uint32_t slot : keep) out.push_back(p == nullptr ? Cell{} : (*p)[slot]);
    for (uint32_t column : fetch) out.push_back(b == nullptr ? Cell{} : (*b)[x() + column]);
    return out;
  }
  Tuple Own(const Tuple& p) const {
    Tuple out;
    for (uint32_t slot : keep) out.push_back(p[slot]);
    return out;
  }
  /// By nested loops; nullopt: an error.
  std::optional<std::vector<Tuple>> Expected() const;
};

/// A join of any kind over keys of these forms.
Join RandomJoin(RandomStream& random, const std::vector<KeyForm>& forms, size_t build_rows,
                uint64_t distinct);
/// For its arguments. Some keys are there once, most several times, one perhaps more than a chunk's rows.
size_t RandomRows(RandomStream& random);
uint64_t RandomDistinct(RandomStream& random);
std::vector<KeyForm> RandomForms(RandomStream& random);

}  // namespace nam::testing
