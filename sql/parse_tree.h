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

/// A node of PostgreSQL's parse tree, a view into a ParsedStatement. The tree leaves out every field that
/// is zero, false or empty, so an absent field and an empty node are the same thing.
///
/// Whoever reads a node calls Only() with the fields that it reads: any other field that is set is a clause
/// that would be ignored, and is refused instead.
class Node {
 public:
  Node() = default;
  Node(const nlohmann::json* body, std::string kind, const SqlText* text)
      : body_(body), kind_(std::move(kind)), text_(text) {}

  explicit operator bool() const { return body_ != nullptr; }
  /// `SelectStmt`, `A_Expr`, …; empty where the grammar allows one kind only.
  const std::string& kind() const { return kind_; }
  bool Is(std::string_view kind) const { return body_ != nullptr && kind_ == kind; }
  /// Where the grammar allows one kind only, for those who read several.
  Node OfKind(std::string kind) const { return {body_, std::move(kind), text_}; }

  Node Field(const char* name) const;
  bool Has(const char* name) const;
  std::vector<Node> List(const char* name) const;
  std::string Text(const char* name) const;
  bool Flag(const char* name) const;
  int64_t Integer(const char* name) const;
  /// A list of names: `public.t` is {"public", "t"}.
  std::vector<std::string> Names(const char* name) const;

  /// Byte offset where the node's own location is, otherwise of the first located node below; -1 if none.
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

/// One parsed statement and what its nodes point into.
class ParsedStatement {
 public:
  /// A syntax error, more than one statement, or none, is an error with position.
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

/// What a query's text says of columns: views are kept as text.
struct ColumnWords {
  std::vector<std::string> names;  // each once: of columns that it names, USING's included
  bool natural = false;            // it has a NATURAL JOIN
};
ColumnWords ColumnWordsOf(const Node& query);
/// Where the query names a column so, with its table's name before it or without.
std::vector<int> ColumnPlacesOf(const Node& query, const std::string& column);

/// Refuses a kind of expression by its name in SQL.
absl::Status RefuseExpression(const Node& node);
/// Refuses a kind of statement by its name in SQL.
absl::Status RefuseStatement(const Node& node);

}  // namespace nam::sql
