#pragma once

#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sql/tokens.h"

namespace nam::sql {

/// A node of PostgreSQL's parse tree, a view into a ParsedStatement. The tree omits every field that is zero,
/// false or empty, so an absent field and an empty node are the same.
///
/// A reader of a node calls Only() with the fields that it reads: any other field is a clause that it would
/// ignore, and is refused.
class Node {
 public:
  Node() = default;
  Node(const nlohmann::json* body, std::string kind, const SqlText* text)
      : body_(body), kind_(std::move(kind)), text_(text) {}

  explicit operator bool() const { return body_ != nullptr; }
  /// `SelectStmt`, `A_Expr`, …; empty where the grammar allows one kind only.
  const std::string& kind() const { return kind_; }
  bool Is(std::string_view kind) const { return body_ != nullptr && kind_ == kind; }
  /// For nodes of which the grammar allows one kind only: sets it, for readers of several.
  Node OfKind(std::string kind) const { return {body_, std::move(kind), text_}; }

  Node Field(const char* name) const;
  bool Has(const char* name) const;
  std::vector<Node> List(const char* name) const;
  std::string Text(const char* name) const;
  bool Flag(const char* name) const;
  int64_t Integer(const char* name) const;
  /// A list of names: `public.t` is {"public", "t"}.
  std::vector<std::string> Names(const char* name) const;

  /// Byte offset of the node's own location, or else of the first located node below; -1 if there is none.
  int position() const;
  /// Byte offset of the first located node below, this one included.
  int Leftmost() const;
  const SqlText& text() const { return *text_; }

  absl::Status Only(std::initializer_list<std::string_view> fields) const;

  const nlohmann::json* body() const { return body_; }

 private:
  const nlohmann::json* Find(const char* name) const;

  const nlohmann::json* body_ = nullptr;
  std::string kind_;
  const SqlText* text_ = nullptr;
};

/// One parsed statement, which owns its nodes' data.
class ParsedStatement {
 public:
  /// A syntax error, several statements or none are an error with position.
  static absl::StatusOr<ParsedStatement> Parse(const std::string& text, StatementTime time = {});

  /// Borrows them.
  void SetParameters(Parameters& parameters) { text_->set_parameters(&parameters); }

  Node root() const;
  const SqlText& text() const { return *text_; }

 private:
  ParsedStatement(std::unique_ptr<SqlText> text, std::shared_ptr<nlohmann::json> tree)
      : text_(std::move(text)), tree_(std::move(tree)) {}

  std::unique_ptr<SqlText> text_;
  std::shared_ptr<nlohmann::json> tree_;  // shared only so that the type may stay incomplete here
};

/// The column names in a query's text: views are kept as text.
struct ColumnWords {
  std::vector<std::string> names;  // distinct names of columns, including USING's
  bool natural = false;            // it has a NATURAL JOIN
};
ColumnWords ColumnWordsOf(const Node& query);
/// The places where the query names the column, with or without its table's name.
std::vector<int> ColumnPlacesOf(const Node& query, const std::string& column);

/// Refuses a kind of expression by its name in SQL.
absl::Status RefuseExpression(const Node& node);
/// Refuses a kind of statement by its name in SQL.
absl::Status RefuseStatement(const Node& node);

}  // namespace nam::sql
