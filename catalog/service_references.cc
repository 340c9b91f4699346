#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/record_tables.h"
#include "catalog/service.h"

/// Foreign keys. The child's description has the constraint; its parent's has a copy (referenced_by), added
/// and removed in the same mutation. Clients that have the parent open read the copy once the count of index
/// changes tells them to (docs/design/transactions.md).
namespace nam::catalog {
namespace {

using References = google::protobuf::RepeatedPtrField<proto::ReferencingKey>;

absl::Status CheckShape(const proto::Table& child, const proto::ForeignKey& key, const proto::Table& parent) {
  const auto known = [](const proto::Table& table, const google::protobuf::RepeatedField<uint32_t>& columns) {
    return std::all_of(columns.begin(), columns.end(),
                       [&](uint32_t column) { return column < static_cast<uint32_t>(table.columns_size()); });
  };
  if (!key.name().empty() && key.columns_size() > 0 && key.columns_size() == key.parent_columns_size() &&
      parent.has_record() && known(child, key.columns()) && known(parent, key.parent_columns())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("foreign key `%s` of table `%s` is not possible", key.name(), child.name()));
}

void RemoveOf(uint64_t child_allocation, References& references) {
  references.erase(std::remove_if(references.begin(), references.end(),
                                  [&](const proto::ReferencingKey& reference) {
                                    return reference.child_allocation() == child_allocation;
                                  }),
                   references.end());
}

}  // namespace

// The table after the mutation.
proto::Table& Service::Changed(const std::string& name, Mutation& mutation) const {
  for (proto::Table& table : mutation.put_tables) {
    if (table.name() == name) return table;
  }
  proto::Table& table = mutation.put_tables.emplace_back(*tables_.at(name).table);
  table.set_version(mutation.version);
  return table;
}

// Rejects a parent other than the one that the child's creator checked.
absl::Status Service::CheckParent(const proto::ForeignKey& key) const {
  const auto found = tables_.find(key.parent());
  const bool same = found != tables_.end() && found->second.table->allocation() == key.parent_allocation();
  const auto unique = [&](const proto::RecordPart& part) {
    return part.name() == key.parent_index() && part.unique() && !part.leaving();
  };
  const auto is_there = [&](const proto::RecordStorage& record) {
    return key.parent_index().empty() || std::any_of(record.parts().begin(), record.parts().end(), unique);
  };
  if (same && is_there(found->second.table->record())) return absl::OkStatus();
  return absl::AbortedError(absl::StrFormat("table `%s`, or its index `%s`, was dropped meanwhile",
                                            key.parent(), key.parent_index()));
}

absl::Status Service::AddReferences(const std::string& child, Mutation& mutation) const {
  proto::Table table = Changed(child, mutation);
  table.mutable_record()->clear_referenced_by();
  for (proto::ForeignKey& key : *table.mutable_record()->mutable_foreign_keys()) {
    const bool itself = key.parent() == child;
    if (itself) {
      key.set_parent_allocation(table.allocation());
    } else {
      NAM_RETURN_IF_ERROR(CheckParent(key));
    }
    proto::Table& parent = itself ? table : Changed(key.parent(), mutation);
    NAM_RETURN_IF_ERROR(CheckShape(table, key, parent));
    proto::ReferencingKey& reference = *parent.mutable_record()->add_referenced_by();
    reference.set_child(child);
    reference.set_child_allocation(table.allocation());
    *reference.mutable_key() = key;
  }
  Changed(child, mutation) = std::move(table);
  return absl::OkStatus();
}

// A self-referencing table is dropped with its own references.
void Service::RemoveReferences(const proto::Table& child, Mutation& mutation) const {
  for (const proto::ForeignKey& key : child.record().foreign_keys()) {
    const auto parent = tables_.find(key.parent());
    if (key.parent() == child.name() || parent == tables_.end()) continue;
    if (parent->second.table->allocation() != key.parent_allocation()) continue;
    RemoveOf(child.allocation(), *Changed(key.parent(), mutation).mutable_record()->mutable_referenced_by());
  }
}

void Service::LeaveParents(const std::string& child, Mutation& mutation) const {
  RemoveReferences(*tables_.at(child).table, mutation);
  proto::Table& table = Changed(child, mutation);
  RemoveOf(table.allocation(), *table.mutable_record()->mutable_referenced_by());
  for (proto::ForeignKey& key : *table.mutable_record()->mutable_foreign_keys()) key.set_leaving(true);
}

absl::Status Service::CheckNotReferenced(const proto::Table& parent) const {
  for (const proto::ReferencingKey& reference : parent.record().referenced_by()) {
    const auto child = tables_.find(reference.child());
    if (reference.child() == parent.name() || child == tables_.end()) continue;
    if (child->second.table->allocation() != reference.child_allocation()) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("constraint `%s` on table `%s` depends on table `%s`", reference.key().name(),
                        reference.child(), parent.name()));
  }
  return absl::OkStatus();
}

absl::Status Service::CheckNoKeyNeeds(const proto::Table& table, const std::string& index) const {
  const auto refuse = [&](const std::string& constraint, const std::string& child) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "cannot drop index %s because constraint %s on table %s requires it", index, constraint, child));
  };
  for (const proto::ForeignKey& key : table.record().foreign_keys()) {
    if (key.index() == index && !key.leaving()) return refuse(key.name(), table.name());
  }
  for (const proto::ReferencingKey& reference : table.record().referenced_by()) {
    if (reference.key().parent_index() == index) return refuse(reference.key().name(), reference.child());
  }
  return absl::OkStatus();
}

}  // namespace nam::catalog
