#include "execution/join/probe_task.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "execution/task.h"
#include "plan/work_cost.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

using plan::JoinKind;

// Row sets of the output.
constexpr size_t kPositions = 0, kPartners = 1, kComposed = 2;

bool MakesPairs(JoinKind kind) {
  switch (kind) {
    case JoinKind::kInner:
    case JoinKind::kLeft:
    case JoinKind::kRight:
    case JoinKind::kFull:
    case JoinKind::kSingle:
      return true;
    case JoinKind::kSemi:
    case JoinKind::kAnti:
    case JoinKind::kNullAwareAnti:
    case JoinKind::kMark:
      return false;
  }
  return false;
}

}  // namespace

ProbeTask::ProbeTask(const BuildSide& build, const ProbeOptions& options, UnmatchedRows* unmatched)
    : build_(build),
      options_(options),
      along_(options.input_row_sets),
      unmatched_rows_(unmatched),
      pairs_(MakesPairs(options.kind)),
      outer_(options.kind == JoinKind::kLeft || options.kind == JoinKind::kFull ||
             options.kind == JoinKind::kSingle),
      notes_(outer_ || !pairs_),
      wants_null_keys_(options.null_aware ||
                       (options.kind == JoinKind::kNullAwareAnti && options.compared == nullptr)) {
  if (options.residuals != nullptr) frame_.emplace(options.residuals->NewFrame());
  if (options.compared != nullptr) compared_frame_.emplace(options.compared->NewFrame());
  if (!pairs_ && (frame_.has_value() || compared_frame_.has_value())) {
    pair_chunk_ = std::make_unique<Chunk>(options.keep.size() + options.fetch.size(),
                                          options.input_row_sets + kComposed);
  }
  if (unmatched_rows_ != nullptr) unmatched_rows_->TaskBegins();
}

ProbeTask::~ProbeTask() {
  if (unmatched_rows_ != nullptr && !draining_) unmatched_rows_->TaskHasProbed();
}

Step ProbeTask::Push(TaskContext& context, const Chunk& in, Chunk& out) {
  if (!busy_) {
    if (!Begin(context, in)) return Step::kFailed;
    busy_ = true;
  }
  const Step step = pairs_ ? PushPairs(context, in, out) : PushOwn(context, in, out);
  busy_ = step == Step::kHaveMore;
  return step;
}

bool ProbeTask::Begin(TaskContext& context, const Chunk& in) {
  next_unmatched_ = 0;
  candidates_.count = 0;
  if (notes_) std::memset(matched_, 0, in.size());
  if (compared_frame_.has_value()) std::memset(unsure_, 0, in.size());
  if (!Start(context, in, candidates_)) return false;
  // One place of the table, and one for each row that it leads to.
  ChargeAccesses(context, in.selection().count + candidates_.count, build_.table_bytes());
  return true;
}

/// Runs as many rounds as fit: at least one, since that has at most as many pairs as the input has tuples.
uint32_t ProbeTask::Gather(uint32_t* positions, uint32_t* rows) {
  uint32_t count = 0;
  while (candidates_.count > 0 && count + candidates_.count <= kChunkRows) {
    count += Matching(candidates_, positions + count, rows + count);
    Advance(candidates_);
  }
  return count;
}

Step ProbeTask::PushPairs(TaskContext& context, const Chunk& in, Chunk& out) {
  uint32_t* const positions = out.row_set(kPositions);
  uint32_t* const partners = out.row_set(kPartners);
  uint32_t count = Gather(positions, partners);
  Compose(in, 0, count, out);
  out.SelectAll(count);
  context.Charge(count, options_.fetch.empty() ? 0 : plan::work_cost::kPartnerRowPs);
  const std::optional<Selection> pairs = Residuals(context, out);
  if (!pairs.has_value()) return Step::kFailed;
  if ((notes_ || unmatched_rows_ != nullptr) && !NoteMatches(context, *pairs, positions, partners))
    return Step::kFailed;
  Selection selection = *pairs;
  if (outer_ && candidates_.count == 0) {
    const uint32_t matched = count;
    const Selection tuples = in.selection();
    for (; next_unmatched_ < tuples.count && count < kChunkRows; ++next_unmatched_) {
      const uint32_t position = tuples[next_unmatched_];
      positions[count] = position;
      partners[count] = kNullRow;
      if (selection.positions != nullptr) selected_[selection.count] = count;
      const uint32_t unmatched = matched_[position] == 0;
      count += unmatched;
      selection.count += unmatched;
    }
    Compose(in, matched, count, out);
  }
  out.Reset(count, selection);
  const bool more = candidates_.count > 0 || (outer_ && next_unmatched_ < in.selection().count);
  return more ? Step::kHaveMore : Step::kNeedInput;
}

Step ProbeTask::PushOwn(TaskContext& context, const Chunk& in, Chunk& out) {
  out.SelectAll(0);
  if (pair_chunk_ == nullptr) {
    uint32_t* const positions = out.row_set(kPositions);
    uint32_t rows[kChunkRows];
    while (candidates_.count > 0) {
      const uint32_t count = Matching(candidates_, positions, rows);
      for (uint32_t i = 0; i < count; ++i) matched_[positions[i]] = 1;
      DropMatched();
      Advance(candidates_);
    }
  } else if (candidates_.count > 0) {
    if (!FindMatches(context, in, *pair_chunk_)) return Step::kFailed;
    if (candidates_.count > 0) return Step::kHaveMore;
  }
  options_.kind == JoinKind::kMark ? PassMark(in, out) : PassOwn(in, out);
  return Step::kNeedInput;
}

bool ProbeTask::FindMatches(TaskContext& context, const Chunk& in, Chunk& pairs) {
  const uint32_t count = Gather(pairs.row_set(kPositions), pairs.row_set(kPartners));
  Compose(in, 0, count, pairs);
  pairs.SelectAll(count);
  const std::optional<Selection> matching = Residuals(context, pairs);
  if (!matching.has_value()) return false;
  if (compared_frame_.has_value()) {
    if (!Compare(context, pairs, *matching)) return false;
  } else {
    const uint32_t* const positions = pairs.row_set(kPositions);
    ForEach(*matching, [&](uint32_t pair) { matched_[positions[pair]] = 1; });
  }
  DropMatched();
  return true;
}

/// Evaluates the comparisons on otherwise matching pairs: each condition where those before were not false.
bool ProbeTask::Compare(TaskContext& context, Chunk& pairs, Selection matching) {
  const Program& compared = *options_.compared;
  ForEach(matching, [&](uint32_t pair) { pair_unsure_[pair] = 0; });
  for (size_t i = 0; i < compared.outputs() && matching.count > 0; ++i) {
    context.Charge(matching.count, plan::work_cost::kFilterRowPs);
    const Vector* const values = compared.Evaluate(i, *compared_frame_, pairs, matching);
    if (values == nullptr) {
      context.Fail(compared_frame_->error());
      return false;
    }
    uint32_t count = 0;
    ForEach(matching, [&](uint32_t pair) {
      pair_unsure_[pair] |= values->truth[pair] == kUnknown;
      compared_[count] = pair;
      count += values->truth[pair] != kFalse;
    });
    matching = {compared_, count};
  }
  const uint32_t* const positions = pairs.row_set(kPositions);
  ForEach(matching,
          [&](uint32_t pair) { (pair_unsure_[pair] != 0 ? unsure_ : matched_)[positions[pair]] = 1; });
  return true;
}

/// Drops tuples for which one match is enough.
void ProbeTask::DropMatched() {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < candidates_.count; ++i) {
    const uint32_t position = candidates_.positions[i];
    candidates_.positions[kept] = position;
    candidates_.rows[kept] = candidates_.rows[i];
    kept += matched_[position] == 0;
  }
  candidates_.count = kept;
}

std::optional<Selection> ProbeTask::Residuals(TaskContext& context, const Chunk& pairs) {
  if (options_.residuals == nullptr || pairs.size() == 0) return pairs.selection();
  context.Charge(pairs.size(), plan::work_cost::kFilterRowPs);
  const std::optional<uint32_t> kept =
      SelectWhere(*options_.residuals, *frame_, pairs, pairs.selection(), selected_);
  if (!kept.has_value()) {
    context.Fail(frame_->error());
    return std::nullopt;
  }
  return Selection{selected_, *kept};
}

/// False: a tuple of a single join has found a second partner.
bool ProbeTask::NoteMatches(TaskContext& context, Selection pairs, const uint32_t* positions,
                            const uint32_t* rows) {
  bool twice = false;
  ForEach(pairs, [&](uint32_t pair) {
    const uint32_t position = positions[pair];
    if (notes_) {
      twice |= matched_[position] != 0;
      matched_[position] = 1;
    }
    if (unmatched_rows_ != nullptr) unmatched_rows_->SetMatched(rows[pair]);
  });
  if (!twice || options_.kind != JoinKind::kSingle) return true;
  context.Fail(UserError(sqlstate::kCardinalityViolation,
                         "more than one row returned by a subquery used as an expression", -1));
  return false;
}

/// Sets the output's columns and row sets for its pairs [from, end).
void ProbeTask::Compose(const Chunk& in, uint32_t from, uint32_t end, Chunk& out) {
  const uint32_t* const positions = out.row_set(kPositions);
  along_.Gather(in, options_.keep, positions, from, end, kComposed, out);
  for (size_t i = 0; i < options_.fetch.size(); ++i) {
    out.columns()[options_.keep.size() + i] = build_.PayloadOf(options_.fetch[i], out.row_set(kPartners));
  }
}

/// Semi and anti joins: the input with fewer tuples.
void ProbeTask::PassOwn(const Chunk& in, Chunk& out) {
  const bool compares = compared_frame_.has_value();
  const bool null_aware = options_.kind == JoinKind::kNullAwareAnti && !compares;
  const BuildFacts facts = Facts();
  if (null_aware && !facts.empty && facts.has_null_key) return;  // none is certain
  for (size_t i = 0; i < options_.keep.size(); ++i) out.columns()[i] = in.column(options_.keep[i]);
  const uint8_t wanted = options_.kind == JoinKind::kSemi;
  const bool drops_nulls = null_aware && !facts.empty;
  uint32_t count = 0;
  ForEach(in.selection(), [&](uint32_t position) {
    selected_[count] = position;
    count += matched_[position] == wanted && !(drops_nulls && null_keys_[position] != 0) &&
             !(compares && unsure_[position] != 0);
  });
  out.Reset(in.size(), {selected_, count});
}

void ProbeTask::PassMark(const Chunk& in, Chunk& out) {
  for (size_t i = 0; i < options_.keep.size(); ++i) out.columns()[i] = in.column(options_.keep[i]);
  const bool compares = compared_frame_.has_value();
  const BuildFacts facts = Facts();
  const bool unknown_for_null = options_.null_aware && !facts.empty;
  const uint8_t unmatched = unknown_for_null && facts.has_null_key ? kUnknown : kFalse;
  ForEach(in.selection(), [&](uint32_t position) {
    const bool unknown =
        (unknown_for_null && null_keys_[position] != 0) || (compares && unsure_[position] != 0);
    const uint8_t otherwise = unknown ? kUnknown : unmatched;
    marks_[position] = matched_[position] != 0 ? kTrue : otherwise;
  });
  Column& mark = out.columns()[options_.keep.size()];
  mark = Column();
  mark.physical = Physical::kTruth;
  mark.width = WidthOf(Physical::kTruth);
  mark.base = reinterpret_cast<const std::byte*>(marks_);
  out.Reset(in.size(), in.selection());
}

Step ProbeTask::Drain(TaskContext& context, Chunk& out) {
  out.SelectAll(0);
  if (unmatched_rows_ == nullptr) return Step::kDone;
  if (!draining_) {
    draining_ = true;
    unmatched_rows_->TaskHasProbed();
  }
  if (!unmatched_rows_->probed().open()) return context.BlockOn(unmatched_rows_->probed());
  uint32_t* const rows = out.row_set(kPartners);
  const uint32_t count = unmatched_rows_->Next(cursor_, rows);
  if (count == 0) return Step::kDone;
  for (size_t i = 0; i < options_.keep.size(); ++i)
    out.columns()[i] = NullColumn(PhysicalOf(options_.input[options_.keep[i]].type));
  for (size_t i = 0; i < options_.fetch.size(); ++i)
    out.columns()[options_.keep.size() + i] = build_.PayloadOf(options_.fetch[i], rows);
  context.Charge(count, plan::work_cost::kPartnerRowPs);
  out.SelectAll(count);
  return Step::kHaveMore;
}

}  // namespace nam::execution
