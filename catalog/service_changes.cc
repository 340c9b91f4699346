#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "base/system_names.h"
#include "catalog/chain_groups.h"
#include "catalog/client.h"
#include "catalog/record_tables.h"
#include "catalog/service.h"

/// Views, schemas, and ALTER of tables.
namespace nam::catalog {
namespace {

constexpr int kViewDepthMax = 32;

bool Contains(const google::protobuf::RepeatedPtrField<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const proto::Column* FindVisible(const proto::Table& table, const std::string& name) {
  for (const proto::Column& column : table.columns()) {
    if (!column.hidden() && column.name() == name) return &column;
  }
  return nullptr;
}

/// True if the table that a view was bound to still has the view's columns.
bool StillThere(const proto::ViewSource& source, const proto::Table& table) {
  std::vector<std::string> columns;
  for (const proto::Column& column : table.columns()) {
    if (!column.hidden()) columns.push_back(column.name());
  }
  return !table.schema() && CreationOf(table) == source.creation() &&
         std::equal(columns.begin(), columns.end(), source.columns().begin(), source.columns().end());
}

/// True if everything that ALTER must not change is unchanged.
bool SameBut(const proto::Table& was, const proto::Table& now) {
  const auto rest = [](proto::Table table) {
    table.clear_columns();
    table.clear_version();
    table.clear_sort_column();
    table.clear_rows();
    for (proto::PartitionKey& key : *table.mutable_partitioning()) key.clear_column();
    if (table.has_record()) {
      table.mutable_record()->clear_checks();
      table.mutable_record()->clear_primary_key();
    }
    return table.SerializeAsString();
  };
  if (was.columns_size() != now.columns_size() || rest(was) != rest(now)) return false;
  for (int c = 0; c < was.columns_size(); ++c) {
    const proto::Column &a = was.columns(c), &b = now.columns(c);
    if (a.type().SerializeAsString() != b.type().SerializeAsString() || (a.dropped() && !b.dropped()) ||
        a.encoding().SerializeAsString() != b.encoding().SerializeAsString() || a.min() != b.min() ||
        a.max() != b.max())
      return false;
  }
  return true;
}

}  // namespace

absl::Status Service::CheckSchema(const std::string& name) const {
  const std::string schema = SchemaOfName(name);
  if (schema == kPublicSchema || IsSystemName(name) || tables_.contains(SchemaEntryOf(schema)))
    return absl::OkStatus();
  return absl::NotFoundError(absl::StrFormat("there is no schema `%s`", schema));
}

std::vector<std::string> Service::ViewsOn(const std::string& name) const {
  std::vector<std::string> views;
  for (const auto& [view, state] : tables_) {
    if (state.table->has_view() && Contains(state.table->view().sources(), name)) views.push_back(view);
  }
  return views;
}

absl::Status Service::CheckNoViewOn(const proto::Table& table) const {
  const std::vector<std::string> views = ViewsOn(table.name());
  if (views.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat("view `%s` depends on %s `%s`", views[0],
                                                       table.has_view() ? "view" : "table", table.name()));
}

// A view's text must keep its meaning: its columns exist, and no other relation gains a column with one of
// their names.
absl::Status Service::CheckViewsKeep(const proto::Table& was, const proto::Table& now) const {
  for (const std::string& name : ViewsOn(was.name())) {
    for (const std::string& column : tables_.at(name).table->view().names()) {
      const proto::Column *const before = FindVisible(was, column), *const after = FindVisible(now, column);
      const bool same = before == nullptr || after == nullptr
                            ? before == after
                            : before->type().SerializeAsString() == after->type().SerializeAsString();
      if (same) continue;
      return absl::FailedPreconditionError(
          absl::StrFormat("view `%s` depends on column `%s` of `%s`", name, column, was.name()));
    }
  }
  return absl::OkStatus();
}

int Service::ViewDepth(const proto::View& view, const std::string& name) const {
  int depth = 1;
  for (const std::string& source : view.sources()) {
    if (source == name) return kViewDepthMax + 1;
    const auto found = tables_.find(source);
    if (found == tables_.end() || !found->second.table->has_view()) continue;
    depth = std::max(depth, 1 + ViewDepth(found->second.table->view(), name));
  }
  return depth;
}

absl::Status Service::CheckNewView(const proto::CreateEntry& create) const {
  const proto::Table& entry = create.entry();
  for (const proto::ViewSource& source : create.sources()) {
    const auto found = tables_.find(source.name());
    if (found != tables_.end() && StillThere(source, *found->second.table)) continue;
    return absl::AbortedError(
        absl::StrFormat("`%s`, which view `%s` reads, was changed meanwhile", source.name(), entry.name()));
  }
  if (create.sources_size() != entry.view().sources_size())
    return absl::InvalidArgumentError("the view does not name all its sources");
  if (ViewDepth(entry.view(), entry.name()) > kViewDepthMax) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "view `%s` would read itself, or views in more than %d levels", entry.name(), kViewDepthMax));
  }
  const auto existing = tables_.find(entry.name());
  if (existing == tables_.end()) return absl::OkStatus();
  if (create.replace() && existing->second.table->has_view())
    return CheckViewsKeep(*existing->second.table, entry);
  return absl::AlreadyExistsError(absl::StrFormat("`%s` exists", entry.name()));
}

absl::Status Service::AddEntry(const proto::CreateEntry& create, Mutation& mutation) const {
  const proto::Table& entry = create.entry();
  const std::string& name = entry.name();
  NAM_RETURN_IF_ERROR(CheckTableName(name));
  NAM_RETURN_IF_ERROR(CheckNotSystem(name, false));
  if (entry.schema() == entry.has_view() || entry.has_record() || entry.partitions_size() > 0 ||
      entry.schema() != (name.find('.') == name.size() - 1))
    return absl::InvalidArgumentError(absl::StrFormat("`%s` is neither a view nor a schema", name));
  if (tables_.size() >= kTablesMax)
    return absl::ResourceExhaustedError(
        absl::StrFormat("the catalog is full: it has %d tables", tables_.size()));
  if (entry.schema()) {
    if (tables_.contains(name)) return absl::AlreadyExistsError(absl::StrFormat("schema `%s` exists", name));
  } else {
    NAM_RETURN_IF_ERROR(CheckSchema(name));
    NAM_RETURN_IF_ERROR(CheckNewView(create));
  }
  proto::Table& put = mutation.put_tables.emplace_back(entry);
  put.set_version(mutation.version);
  put.set_allocation(mutation.next_allocation++);
  put.set_creation(put.allocation());
  return absl::OkStatus();
}

// Appends in progress use the table's name.
absl::Status Service::Rename(const proto::RenameTable& rename, Mutation& mutation) const {
  NAM_RETURN_IF_ERROR(CheckTableName(rename.to()));
  NAM_RETURN_IF_ERROR(CheckNotSystem(rename.from(), false));
  NAM_RETURN_IF_ERROR(CheckNotSystem(rename.to(), false));
  NAM_ASSIGN_OR_RETURN(const TableState* const found, FindTable(rename.from()));
  // Transaction clients know record tables by name for as long as they live.
  if (found->table->schema() || found->table->has_record())
    return absl::InvalidArgumentError("schemas and record tables are not renamed");
  if (CreationOf(*found->table) != rename.creation())
    return absl::AbortedError(absl::StrFormat("table `%s` was replaced meanwhile", rename.from()));
  if (tables_.contains(rename.to()))
    return absl::AlreadyExistsError(absl::StrFormat("`%s` exists", rename.to()));
  NAM_RETURN_IF_ERROR(CheckSchema(rename.to()));
  NAM_RETURN_IF_ERROR(CheckNoViewOn(*found->table));
  proto::Table table = *found->table;
  table.set_name(rename.to());
  table.set_version(mutation.version);
  for (const auto& [allocation, load] : loads_) {
    if (load.extends.value() != CreationOf(table) || load.table != rename.from()) continue;
    mutation.put_loads.push_back(load);
    mutation.put_loads.back().table = rename.to();
  }
  mutation.delete_tables.push_back(rename.from());
  mutation.put_tables.push_back(std::move(table));
  return absl::OkStatus();
}

absl::Status Service::Alter(const proto::AlterTable& alter, Mutation& mutation) const {
  NAM_RETURN_IF_ERROR(CheckNotSystem(alter.table().name(), false));
  NAM_ASSIGN_OR_RETURN(const TableState* const found, FindTable(alter.table().name()));
  const proto::Table& was = *found->table;
  // No client is told of former groups, which statements still read.
  proto::Table now = alter.table();
  *now.mutable_retired() = was.retired();
  if (was.version() != alter.expected_version())
    return absl::AbortedError(absl::StrFormat("table `%s` was changed meanwhile", now.name()));
  if (was.has_view() || was.schema() || !SameBut(was, now)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the change of table `%s` concerns more than its columns", now.name()));
  }
  NAM_RETURN_IF_ERROR(CheckViewsKeep(was, now));
  now.set_version(mutation.version);
  mutation.put_tables.push_back(std::move(now));
  return absl::OkStatus();
}

absl::StatusOr<proto::ChangeCatalogReply> Service::ChangeCatalog(const proto::ChangeCatalogRequest& request) {
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  // A table that a load has closed may be opened at any time, and a backup holds up no end of the cluster.
  const bool opens =
      request.has_fill() && std::ranges::all_of(request.fill().steps(), [](const proto::FillTable& step) {
        return step.step_case() == proto::FillTable::kClose && !step.close();
      });
  if (!opens && !request.has_saved()) NAM_RETURN_IF_ERROR(CheckNotQuiet(""));
  Mutation mutation = NewMutation();
  switch (request.change_case()) {
    case proto::ChangeCatalogRequest::kCreate:
      NAM_RETURN_IF_ERROR(AddEntry(request.create(), mutation));
      break;
    case proto::ChangeCatalogRequest::kRename:
      NAM_RETURN_IF_ERROR(Rename(request.rename(), mutation));
      break;
    case proto::ChangeCatalogRequest::kAlter:
      NAM_RETURN_IF_ERROR(Alter(request.alter(), mutation));
      break;
    case proto::ChangeCatalogRequest::kFill:
      if (IsFilled(request.fill())) break;
      for (const proto::FillTable& step : request.fill().steps()) NAM_RETURN_IF_ERROR(Fill(step, mutation));
      break;
    case proto::ChangeCatalogRequest::kSaved:
      NAM_RETURN_IF_ERROR(MarkSaved(request.saved(), mutation));
      break;
    default:
      return absl::InvalidArgumentError("nothing to change");
  }
  NAM_RETURN_IF_ERROR(Apply(mutation));
  proto::ChangeCatalogReply reply;
  reply.set_version(mutation.version);
  SetMark(reply, Mark());
  return reply;
}

// Drops a schema's contents; and for any entry the views that read it, transitively.
absl::Status Service::DropWithDependents(const std::string& name, bool cascade, Mutation& mutation) const {
  std::vector<std::string> dropped = {name};
  if (tables_.at(name).table->schema()) {
    for (auto in = tables_.upper_bound(name); in != tables_.end() && in->first.starts_with(name); ++in)
      dropped.push_back(in->first);
    if (dropped.size() > 1 && !cascade) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s `%s` depends on schema `%s`", tables_.at(dropped[1]).table->has_view() ? "view" : "table",
          dropped[1], SchemaOfName(name)));
    }
  }
  for (size_t i = 0; i < dropped.size(); ++i) {
    const proto::Table& table = *tables_.at(dropped[i]).table;
    if (!cascade) NAM_RETURN_IF_ERROR(CheckNoViewOn(table));
    for (std::string& view : ViewsOn(table.name())) {
      if (std::find(dropped.begin(), dropped.end(), view) == dropped.end())
        dropped.push_back(std::move(view));
    }
    NAM_RETURN_IF_ERROR(CheckNotReferenced(table));
    RemoveReferences(table, mutation);
  }
  mutation.delete_tables = std::move(dropped);
  std::erase_if(mutation.put_tables, [&](const proto::Table& table) {
    return std::find(mutation.delete_tables.begin(), mutation.delete_tables.end(), table.name()) !=
           mutation.delete_tables.end();
  });
  return absl::OkStatus();
}

absl::Status Service::MarkSaved(const proto::MarkSaved& saved, Mutation& mutation) {
  ForgetEndedQuiet();
  if (saved.closed_by() != 0 && (!closed_to_clients_ || quiet_for_ != saved.closed_by())) {
    return absl::AbortedError(
        "other clients may have changed record tables since these were saved, as the catalog was restarted "
        "or "
        "the client that saved them has ended");
  }
  mutation.put_saved_records = saved.number();
  mutation.makes_room = true;  // the disk is full, perhaps by the file
  return absl::OkStatus();
}

// The quiet ends with the membership.
void Service::ForgetEndedQuiet() {
  if (quiet_for_ != 0 && FindLiving(quiet_for_) == nullptr) quiet_for_ = 0;
  closed_to_clients_ &= quiet_for_ != 0;
}

absl::Status Service::CheckOpenToClients() {
  ForgetEndedQuiet();
  if (!closed_to_clients_) return absl::OkStatus();
  absl::Status closed = absl::FailedPreconditionError(
      absl::StrFormat("the cluster is being stopped (`nam down`); if that was killed, try again in %d s",
                      (options_.lease_ms + 999) / 1'000));
  closed.SetPayload(kClosedPayload, absl::Cord("1"));
  return closed;
}

absl::Status Service::CheckNotQuiet(const std::string& table) {
  if (IsSystemName(table)) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(CheckOpenToClients());
  if (quiet_for_ == 0) return absl::OkStatus();
  absl::Status quiet = absl::FailedPreconditionError(
      "a backup is under way: until it has saved record tables, tables can be read and rows of record tables "
      "changed, but nothing can be loaded, created, altered or dropped; try again later");
  quiet.SetPayload(kQuietPayload, absl::Cord("1"));
  return quiet;
}

absl::StatusOr<proto::QuietReply> Service::Quiet(const proto::QuietRequest& request) {
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  NAM_RETURN_IF_ERROR(CheckLiving(request.member()));
  const absl::Status free = request.ends_clients() ? CheckOpenToClients() : CheckNotQuiet("");
  const bool own = quiet_for_ == request.member();
  if (request.end()) {
    if (!own) return absl::NotFoundError("the pause for this member's backup has ended early");
    quiet_for_ = 0;
    closed_to_clients_ = false;
    return proto::QuietReply();
  }
  if (!own) NAM_RETURN_IF_ERROR(free);
  proto::QuietReply reply;
  if (request.ends_clients()) NAM_RETURN_IF_ERROR(EndClients(request, reply));
  quiet_for_ = request.member();
  closed_to_clients_ |= request.ends_clients();
  for (const auto& [allocation, load] : loads_) {
    const auto extended = tables_.find(load.table);
    const bool grows =
        load.extends != AllocationId() && extended != tables_.end() && extended->second.table->has_record();
    if (!IsSystemName(load.table) && !grows) reply.add_loads(load.table);
  }
  return reply;
}

absl::Status Service::EndClients(const proto::QuietRequest& request, proto::QuietReply& reply) {
  NAM_RETURN_IF_ERROR(CheckSelf(request.member(), request.proof()));
  Mutation mutation = NewMutation();
  std::vector<std::string> ends;
  for (const auto& [id, state] : members_) {
    if (id == request.member() || state.member.role() != proto::ROLE_CLIENT || !state.member.alive())
      continue;
    ends.push_back(EndText(state, "the cluster is being stopped"));
    EndMembership(state, mutation);
    reply.add_ended(id);
  }
  if (!ends.empty()) NAM_RETURN_IF_ERROR(Apply(mutation));
  for (std::string& end : ends) events_.Add(LogLevel::kInfo, std::move(end));
  return absl::OkStatus();
}

}  // namespace nam::catalog
