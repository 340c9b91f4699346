#include "tests/execution/join/random_join.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "plan/expression.h"

namespace nam::testing {
namespace {

using plan::JoinKind;

constexpr uint64_t kMostPairs = 40'000;  // about

}  // namespace

plan::Slot Number(__int128 low, __int128 high) {
  return {.type = Type::Integer(), .nullable = true, .bounds = {low, high, true}};
}

Key Key::Of(KeyForm form, RandomStream& random) {
  switch (form) {
    case KeyForm::kNarrow:
      return {form, Number(-1000, 70'000), Number(-3, 250)};
    case KeyForm::kWide: {
      const plan::Slot unknown = {.type = Type::Decimal(2)};
      plan::Slot bounded = unknown;
      bounded.bounds = {-3, 100'000, true};
      const bool which = random.OneIn(2);
      return {form, which ? unknown : bounded, random.OneIn(2) ? unknown : bounded};
    }
    case KeyForm::kText:
      return {form, {.type = Type::String()}, {.type = Type::String()}};
    case KeyForm::kCharBesideVarchar:
      return {form, {.type = plan::CharType(9)}, {.type = Type::String(9)}};
    case KeyForm::kBool:
      return {form, {.type = Type::Bool()}, {.type = Type::Bool()}};
  }
  return {};
}

Cell Key::Random(bool of_probe, uint64_t distinct, RandomStream& random) const {
  if (random.OneIn(8)) return {};
  const auto number = static_cast<int64_t>(random.Below(distinct)) - 3;
  switch (form) {
    case KeyForm::kNarrow:
      return Cell::Number(
          std::min<int64_t>(of_probe && random.OneIn(10) ? 60'000 : number, of_probe ? 60'000 : 250));
    case KeyForm::kWide: {
      const plan::Slot& slot = of_probe ? probe : build;
      const bool huge = !slot.bounds.known && random.OneIn(8);
      return Cell::Number(huge ? (__int128{1} << 70) + number : __int128{number});
    }
    case KeyForm::kText:
    case KeyForm::kCharBesideVarchar: {
      std::string text = number == 0 ? "" : "t" + std::to_string(number);
      const bool is_char = form == KeyForm::kCharBesideVarchar && of_probe;  // has none at its end
      if (!is_char && random.OneIn(3)) text += ' ';
      return Cell::Text(std::move(text));
    }
    case KeyForm::kBool:
      return Cell::Number(number & 1);
  }
  return {};
}

bool Key::Equal(const Cell& a, const Cell& b) const {
  if (a.null || b.null) return false;
  if (form != KeyForm::kCharBesideVarchar) return a == b;
  return plan::WithoutBlanks(a.text) == plan::WithoutBlanks(b.text);
}

std::optional<std::vector<Tuple>> Join::Expected() const {
  std::vector<Tuple> out;
  std::vector<bool> build_matched(build.size());
  const bool build_has_null =
      std::any_of(build.begin(), build.end(), [](const Tuple& b) { return b[0].null; });
  const bool pairs = kind == JoinKind::kInner || kind == JoinKind::kLeft || kind == JoinKind::kRight ||
                     kind == JoinKind::kFull || kind == JoinKind::kSingle;
  for (const Tuple& p : probe) {
    size_t matches = 0;
    for (size_t i = 0; i < build.size(); ++i) {
      if (!Matches(p, build[i])) continue;
      ++matches;
      build_matched[i] = true;
      if (pairs) out.push_back(Output(&p, &build[i]));
    }
    const bool unknown = matches == 0 && !build.empty() && (p[0].null || build_has_null);
    switch (kind) {
      case JoinKind::kSingle:
        if (matches > 1) return std::nullopt;
        [[fallthrough]];
      case JoinKind::kLeft:
      case JoinKind::kFull:
        if (matches == 0) out.push_back(Output(&p, nullptr));
        break;
      case JoinKind::kSemi:
        if (matches > 0) out.push_back(Own(p));
        break;
      case JoinKind::kAnti:
        if (matches == 0) out.push_back(Own(p));
        break;
      case JoinKind::kNullAwareAnti:
        if (matches == 0 && !unknown) out.push_back(Own(p));
        break;
      case JoinKind::kMark:
        out.push_back(Own(p));
        out.back().push_back(null_aware && unknown ? Cell{} : Cell::Number(matches > 0));
        break;
      default:
        break;
    }
  }
  if (kind == JoinKind::kRight || kind == JoinKind::kFull) {
    for (size_t i = 0; i < build.size(); ++i) {
      if (!build_matched[i]) out.push_back(Output(nullptr, &build[i]));
    }
  }
  return out;
}

Join RandomJoin(RandomStream& random, const std::vector<KeyForm>& forms, size_t build_rows,
                uint64_t distinct) {
  Join join;
  join.kind = kAllKinds[random.Below(std::size(kAllKinds))];
  for (KeyForm form : forms) join.AddKey(Key::Of(form, random));
  join.AddPayload();
  join.ChooseColumns(random);
  const bool one = forms.size() == 1;
  if (join.kind == JoinKind::kNullAwareAnti && !one) join.kind = JoinKind::kAnti;
  join.null_aware = join.kind == JoinKind::kMark && one && random.OneIn(2);
  join.residual = join.kind != JoinKind::kNullAwareAnti && !join.null_aware && random.OneIn(2);
  constexpr size_t kProbeRows[] = {0, 1, 1023, 1024, 1025, 3000};
  uint64_t combinations = 1;
  for (KeyForm form : forms) combinations *= form == KeyForm::kBool ? 2 : distinct;
  const uint64_t most = std::max<uint64_t>(1, kMostPairs * combinations / std::max<uint64_t>(build_rows, 1));
  const uint64_t probe_rows = std::min<uint64_t>(most, kProbeRows[random.Below(std::size(kProbeRows))]);
  for (size_t i = 0; i < probe_rows; ++i) join.probe.push_back(join.RandomTuple(true, distinct, random));
  for (size_t i = 0; i < build_rows; ++i) join.build.push_back(join.RandomTuple(false, distinct, random));
  // Otherwise nothing is certain where a build side has a NULL, and single joins always fail.
  if (join.kind == JoinKind::kNullAwareAnti || join.kind == JoinKind::kMark) {
    if (random.OneIn(2)) std::erase_if(join.build, [](const Tuple& b) { return b[0].null; });
  }
  return join;
}

size_t RandomRows(RandomStream& random) {
  constexpr size_t kRows[] = {0, 1, 5, 200, 1023, 1024, 1025, 2500};
  return kRows[random.Below(std::size(kRows))];
}

uint64_t RandomDistinct(RandomStream& random) {
  constexpr uint64_t kDistinct[] = {1, 4, 40, 250, 250};
  return kDistinct[random.Below(std::size(kDistinct))];
}

std::vector<KeyForm> RandomForms(RandomStream& random) {
  std::vector<KeyForm> forms(random.Below(3) + 1);
  for (KeyForm& form : forms) form = static_cast<KeyForm>(random.Below(5));
  return forms;
}

}  // namespace nam::testing
