#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "catalog/record_tables.h"
#include "catalog/service.h"

/// The end of a load into a record table:
///
///     stock        (storage A) ─close─▶ closed ─filled─▶ (storage B), new allocation, loaded_at
///     nam.load.5.1 (storage B) ───────────────────┘      A is over
///
/// docs/design/sql-on-record-tables.md.
namespace nam::catalog {
namespace {

/// True if a part of the new storage may take the place of the table's.
bool SamePart(const proto::RecordPart& was, const proto::RecordPart& now, const std::string& filled) {
  if (was.kind() != now.kind() || was.key_bytes() != now.key_bytes()) return false;
  if (was.kind() != proto::ORDERED_INDEX) return was.name() == now.name();
  const auto shape = [](proto::RecordPart part) {
    part.clear_name();
    part.clear_extents();
    part.clear_usable_from();
    return part.SerializeAsString();
  };
  return shape(was) == shape(now) && now.name() == absl::StrCat(filled, ".", was.name()) &&
         was.usable_from() != 0 && now.usable_from() != 0 && !was.leaving();
}

/// True if the rows of `filled` are rows of `table`: same columns, constraints and parts.
bool SameRows(const proto::Table& table, const proto::Table& filled) {
  const proto::RecordStorage &was = table.record(), &now = filled.record();
  const auto shape = [](const proto::Table& of) {
    proto::Table shown;
    *shown.mutable_columns() = of.columns();
    const proto::RecordStorage& record = of.record();
    shown.mutable_record()->set_row_bytes(record.row_bytes());
    shown.mutable_record()->set_key_bytes(record.key_bytes());
    *shown.mutable_record()->mutable_primary_key() = record.primary_key();
    *shown.mutable_record()->mutable_checks() = record.checks();
    return shown.SerializeAsString();
  };
  return shape(table) == shape(filled) && was.foreign_keys().empty() && was.referenced_by().empty() &&
         std::equal(was.parts().begin(), was.parts().end(), now.parts().begin(), now.parts().end(),
                    [&](const proto::RecordPart& a, const proto::RecordPart& b) {
                      return SamePart(a, b, filled.name());
                    });
}

/// The table with the storage of `filled`. Its new allocation is no memory's: it is another table to clients,
/// which know tables, and what they have opened of them, by their allocations.
proto::Table WithStorage(const proto::Table& table, const proto::Table& filled, uint64_t allocation,
                         uint64_t loaded_at) {
  proto::Table out = table;
  out.set_allocation(allocation);
  out.set_creation(allocation);
  proto::RecordStorage& record = *out.mutable_record();
  record.set_extent_bytes(filled.record().extent_bytes());
  record.set_versions(filled.record().versions());
  record.set_loaded_at(loaded_at);
  record.clear_closed_by();
  for (int i = 0; i < record.parts_size(); ++i) {
    std::string name = record.parts(i).name();
    *record.mutable_parts(i) = filled.record().parts(i);
    record.mutable_parts(i)->set_name(std::move(name));
  }
  CountUsage(out);
  return out;
}

}  // namespace

/// True if the request is repeated because its answer was lost.
bool Service::IsFilled(const proto::FillTables& fills) const {
  return !fills.steps().empty() &&
         std::ranges::all_of(
             fills.steps(), [&](const proto::FillTable& fill) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
               const auto table = tables_.find(fill.table());
               return fill.fill() && !tables_.contains(fill.load()) && table != tables_.end() &&
                      fill.loaded_at() != 0 && table->second.table->record().loaded_at() == fill.loaded_at();
             });
}

absl::Status Service::Fill(const proto::FillTable& fill, Mutation& mutation) const {
  NAM_RETURN_IF_ERROR(CheckNotSystem(fill.table(), false));
  NAM_RETURN_IF_ERROR(CheckLiving(fill.member()));
  const auto found = tables_.find(fill.table());
  if (found == tables_.end() || found->second.table->allocation() != fill.allocation()) {
    return absl::AbortedError(absl::StrFormat("table `%s` was dropped, or loaded, meanwhile", fill.table()));
  }
  if (!IsLoadNameOf(fill.load(), fill.member()))
    return absl::InvalidArgumentError(absl::StrFormat("`%s` is no load of the member", fill.load()));
  const auto load = tables_.find(fill.load());
  if (load == tables_.end()) return absl::AbortedError(absl::StrFormat("load `%s` is over", fill.load()));
  const proto::Table &table = *found->second.table, &filled = *load->second.table;
  const bool closes = fill.step_case() == proto::FillTable::kClose && fill.close();
  if (!table.has_record() || table.record().closed_by() != (closes ? 0 : filled.allocation())) {
    return absl::AbortedError(
        absl::StrFormat("table `%s` is not closed by this load, or by another one", fill.table()));
  }
  if (fill.step_case() != proto::FillTable::kFill) {
    Changed(fill.table(), mutation).mutable_record()->set_closed_by(closes ? filled.allocation() : 0);
    return absl::OkStatus();
  }
  if (!fill.fill() || fill.loaded_at() == 0)
    return absl::InvalidArgumentError(absl::StrFormat("a load of `%s` without a snapshot", fill.table()));
  if (!SameRows(table, filled))
    return absl::AbortedError(absl::StrFormat("table `%s` was altered while it was loaded", fill.table()));
  mutation.put_tables.push_back(WithStorage(table, filled, mutation.next_allocation++, fill.loaded_at()));
  mutation.put_tables.back().set_version(mutation.version);
  mutation.delete_tables.push_back(fill.load());
  mutation.makes_room = true;
  return absl::OkStatus();
}

/// A member's loads end with it: nothing of them stays, and tables that it has closed are open. An index that
/// it was filling leaves: nobody will complete it. Its memory goes with the first member that meets it, since
/// commits under way may write there (txn::CreateIndex).
void Service::EndFills(uint32_t member, Mutation& mutation) const {
  std::set<uint64_t> loads;
  for (const auto& [name, state] : tables_) {
    if (IsLoadNameOf(name, member)) loads.insert(state.table->allocation());
  }
  for (const auto& [name, state] : tables_) {
    if (IsLoadNameOf(name, member)) {
      mutation.delete_tables.push_back(name);
      continue;
    }
    if (loads.contains(state.table->record().closed_by()))
      Changed(name, mutation).mutable_record()->clear_closed_by();
    for (int i = 0; i < state.table->record().parts_size(); ++i) {
      if (state.table->record().parts(i).builder() != member) continue;
      proto::RecordPart& index = *Changed(name, mutation).mutable_record()->mutable_parts(i);
      index.set_leaving(true);
      index.clear_builder();
    }
  }
}

}  // namespace nam::catalog
