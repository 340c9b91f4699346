#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sql/record_binder.h"
#include "sql/tokens.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using TransactionKind = TransactionStatement::Kind;

struct Spelled {
  const char* kind;
  const char* name;
};
constexpr Spelled kRefused[] = {
    {"TRANS_STMT_PREPARE", "PREPARE TRANSACTION"},
    {"TRANS_STMT_COMMIT_PREPARED", "COMMIT PREPARED"},
    {"TRANS_STMT_ROLLBACK_PREPARED", "ROLLBACK PREPARED"},
};

struct ParsedKind {
  const char* kind;
  TransactionKind is;
};
constexpr ParsedKind kKinds[] = {
    {"TRANS_STMT_BEGIN", TransactionKind::kBegin},
    {"TRANS_STMT_START", TransactionKind::kBegin},
    {"TRANS_STMT_COMMIT", TransactionKind::kCommit},
    {"TRANS_STMT_ROLLBACK", TransactionKind::kRollback},
    {"TRANS_STMT_SAVEPOINT", TransactionKind::kSavepoint},
    {"TRANS_STMT_ROLLBACK_TO", TransactionKind::kRollbackTo},
    {"TRANS_STMT_RELEASE", TransactionKind::kRelease},
};

absl::Status CheckOption(const Node& option) {
  const std::string name = option.Text("defname");
  const Node value = option.Field("arg");
  if (name == "transaction_isolation") {
    const std::string level = value.Field("sval").Text("sval");
    if (level == "repeatable read") return absl::OkStatus();
    return Refusal(absl::StrCat("ISOLATION LEVEL ", absl::AsciiStrToUpper(level), " is not supported"),
                   option.position(), "transactions are under snapshot isolation: REPEATABLE READ");
  }
  const bool on = value.Field("ival").Integer("ival") != 0;
  if (!on && (name == "transaction_read_only" || name == "transaction_deferrable")) return absl::OkStatus();
  return Refusal(
      name == "transaction_read_only" ? "READ ONLY is not supported" : "DEFERRABLE is not supported",
      option.position(), "leave it out: a transaction that writes nothing costs nothing to commit");
}

}  // namespace

absl::StatusOr<Statement> BindSetTransaction(const Node& node) {
  NAM_RETURN_IF_ERROR(node.Only({"kind", "name", "args", "is_local"}));
  const bool all = node.Text("name") == "SESSION CHARACTERISTICS";
  if (!all && node.Text("name") != "TRANSACTION") {
    return Refusal(absl::StrCat("SET ", node.Text("name"), " is not supported"), node.text().Start(),
                   "a transaction's snapshot is that of its BEGIN");
  }
  for (const Node& option : node.List("args")) NAM_RETURN_IF_ERROR(CheckOption(option));
  return Statement(SetStatement{.name = all ? "default_transaction_isolation" : "transaction_isolation",
                                .values = {"repeatable read"},
                                .local = !all,
                                .position = node.text().Start()});
}

bool BeginsTransaction(const std::string& text) {
  const ScanResult scan = Scan(text);
  const SqlText tokens(text, scan.tokens);
  const int start = tokens.Start();
  return start == tokens.Find({"begin"}) || start == tokens.Find({"start"});
}

bool RollsBackToSavepoint(const std::string& text) {
  const ScanResult scan = Scan(text);
  const SqlText tokens(text, scan.tokens);
  const int start = tokens.Start();
  return start == tokens.Find({"rollback", "to"}) || start == tokens.Find({"rollback", "work", "to"}) ||
         start == tokens.Find({"rollback", "transaction", "to"});
}

absl::StatusOr<Statement> BindTransaction(const Node& node) {
  const std::string kind = node.Text("kind");
  const SqlText& text = node.text();
  for (const Spelled& refused : kRefused) {
    if (kind == refused.kind) {
      return Refusal(absl::StrCat(refused.name, " is not supported"), text.Start(),
                     "a transaction is committed or rolled back as a whole");
    }
  }
  if (node.Flag("chain")) {
    return Refusal("AND CHAIN is not supported", text.Find({"and"}), "write BEGIN afterwards");
  }
  NAM_RETURN_IF_ERROR(node.Only({"kind", "options", "savepoint_name"}));
  for (const Node& option : node.List("options")) NAM_RETURN_IF_ERROR(CheckOption(option));
  const ParsedKind* const known = std::find_if(std::begin(kKinds), std::end(kKinds),
                                               [&](const ParsedKind& named) { return kind == named.kind; });
  if (known == std::end(kKinds)) return Refusal("this statement is not supported", text.Start());
  return Statement(TransactionStatement{known->is, node.Text("savepoint_name")});
}

}  // namespace nam::sql
