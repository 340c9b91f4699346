#include "sql/row_lock_binder.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

enum class ItemKind : uint8_t { kTable, kSubquery, kCommonTable, kFunction, kJoin };

/// An item that a locking clause may name.
struct Item {
  ItemKind kind = ItemKind::kTable;
  std::string alias;
  int relation = -1;      // a table's
  bool nullable = false;  // an outer join may have no row for it
};

const char* Noun(ItemKind kind) {
  switch (kind) {
    case ItemKind::kCommonTable:
      return "a WITH query";
    case ItemKind::kFunction:
      return "a function";
    case ItemKind::kJoin:
      return "a join";
    default:
      return "a subquery";
  }
}

/// FROM's items in the order in which they were bound, so that the tables are those that the select owns.
class FromItems {
 public:
  FromItems(const LogicalContext& context, const Surroundings& around, const LogicalSelect* owner)
      : ctes_(around.ctes), views_(context.view_items) {
    for (const auto& [relation, table] : context.scanned) {
      if (context.owners[static_cast<size_t>(relation)] == owner) relations_.push_back(relation);
    }
  }
  void Add(const Node& node, bool nullable) {
    const Node alias = node.Field("alias");
    Item item{.alias = alias ? alias.Text("aliasname") : node.Text("relname"), .nullable = nullable};
    if (node.Is("JoinExpr")) {
      const std::string type = node.Text("jointype");
      const bool full = type == "JOIN_FULL";
      Add(node.Field("larg"), nullable || full || type == "JOIN_RIGHT");
      Add(node.Field("rarg"), nullable || full || type == "JOIN_LEFT");
      item.kind = ItemKind::kJoin;
      if (!alias) return;
    } else if (node.Is("RangeSubselect")) {
      item.kind = ItemKind::kSubquery;
    } else if (node.Is("RangeFunction")) {
      item.kind = ItemKind::kFunction;
    } else if (ctes_ != nullptr && !node.Has("schemaname") && ctes_->Find(node.Text("relname")) != nullptr) {
      item.kind = ItemKind::kCommonTable;
    } else if (views_.contains(node.position())) {
      item.kind = ItemKind::kSubquery;
    } else {
      item.relation = relations_.at(next_++);
    }
    items_.push_back(std::move(item));
  }
  const std::vector<Item>& items() const { return items_; }

 private:
  CommonTables* const ctes_;
  const std::set<int>& views_;
  std::vector<int> relations_;
  size_t next_ = 0;
  std::vector<Item> items_;
};

class RowLocks {
 public:
  RowLocks(const LogicalContext& context, const std::vector<Item>& items)
      : context_(context), items_(items) {}

  absl::Status Add(const Node& clause) {
    NAM_RETURN_IF_ERROR(clause.Only({"lockedRels", "strength", "waitPolicy"}));
    const LockingWords words = WordsOf(clause);
    const std::string policy = clause.Text("waitPolicy");
    if (policy == "LockWaitSkip") {
      return Refusal("SKIP LOCKED is not supported", clause.text().Find({"skip", "locked"}, words.position),
                     "a row that another transaction is about to change is not known to be locked");
    }
    const bool waits = policy != "LockWaitError";
    const std::vector<Node> named = clause.List("lockedRels");
    for (const Node& name : named) NAM_RETURN_IF_ERROR(AddNamed(name, words, waits));
    if (!named.empty()) return absl::OkStatus();
    for (const Item& item : items_) {
      if (item.kind == ItemKind::kSubquery) {
        return Refusal(absl::StrCat(words.words, " of tables inside a subquery is not supported"),
                       words.position, "name tables of FROM behind OF");
      }
      if (item.kind == ItemKind::kTable) NAM_RETURN_IF_ERROR(AddItem(item, words, words.position, waits));
    }
    return absl::OkStatus();
  }

  std::vector<LockedRelation> Take() {
    std::sort(locked_.begin(), locked_.end(),
              [](const LockedRelation& a, const LockedRelation& b) { return a.relation < b.relation; });
    return std::move(locked_);
  }

 private:
  absl::Status AddNamed(const Node& name, const LockingWords& words, bool waits) {
    if (name.Has("schemaname") || name.Has("catalogname")) {
      return UserError(sqlstate::kSyntaxError,
                       absl::StrCat(words.words, " must specify unqualified relation names"), name.position(),
                       "write the alias, or the table's name alone");
    }
    const std::string alias = name.Text("relname");
    const auto item = std::find_if(items_.begin(), items_.end(),
                                   [&](const Item& candidate) { return candidate.alias == alias; });
    if (item == items_.end()) {
      return UserError(
          sqlstate::kUndefinedTable,
          absl::StrCat("relation ", Quote(alias), " in ", words.words, " clause not found in FROM clause"),
          name.position(), "name it as FROM does");
    }
    if (item->kind != ItemKind::kTable) {
      return Refusal(absl::StrCat(words.words, " cannot be applied to ", Noun(item->kind)), name.position(),
                     "name a table of FROM");
    }
    return AddItem(*item, words, name.position(), waits);
  }

  absl::Status AddItem(const Item& item, const LockingWords& words, int position, bool waits) {
    const proto::Table& table = *context_.scanned.at(item.relation);
    if (!IsRecordTable(table)) {
      return Refusal(absl::StrCat(words.words, " of ", Quote(table.name()), " is not supported"), position,
                     "it is a columnar table, whose rows do not change");
    }
    if (item.nullable) {
      return Refusal(absl::StrCat(words.words, " cannot be applied to the nullable side of an outer join"),
                     position, "name the tables that always have a row behind OF");
    }
    const auto same = std::find_if(locked_.begin(), locked_.end(), [&](const LockedRelation& locked) {
      return locked.relation == item.relation;
    });
    if (same == locked_.end()) {
      locked_.push_back({item.relation, waits});
    } else {
      same->waits = same->waits && waits;
    }
    return absl::OkStatus();
  }

  const LogicalContext& context_;
  const std::vector<Item>& items_;
  std::vector<LockedRelation> locked_;
};

}  // namespace

LockingWords WordsOf(const Node& clause) {
  const std::string strength = clause.Text("strength");
  const SqlText& text = clause.text();
  if (strength == "LCS_FORKEYSHARE") return {"FOR KEY SHARE", text.Find({"for", "key", "share"})};
  if (strength == "LCS_FORSHARE") return {"FOR SHARE", text.Find({"for", "share"})};
  if (strength == "LCS_FORNOKEYUPDATE")
    return {"FOR NO KEY UPDATE", text.Find({"for", "no", "key", "update"})};
  return {"FOR UPDATE", text.Find({"for", "update"})};
}

absl::StatusOr<std::vector<LockedRelation>> BindRowLocks(LogicalContext& context, const Surroundings& around,
                                                         const LogicalSelect* owner, const Node& select) {
  FromItems from(context, around, owner);
  for (const Node& node : select.List("fromClause")) from.Add(node, /*nullable=*/false);
  RowLocks locks(context, from.items());
  for (const Node& clause : select.List("lockingClause")) NAM_RETURN_IF_ERROR(locks.Add(clause));
  return locks.Take();
}

}  // namespace nam::sql
