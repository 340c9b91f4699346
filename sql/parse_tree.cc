#include "sql/parse_tree.h"

#include <pg_query.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "sql/file_names.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using Json = nlohmann::json;

constexpr size_t kLongestStatementBytes = size_t{4} << 20;
/// The parser's library recurses over its tree without a bound. Every level of a tree costs a token that is
/// not flat; this many levels take at most 2 MiB of stack.
constexpr size_t kMostNestingTokens = 10000;

/// `{"Tag": {…}}` is a node of kind Tag; for `{…}` the place gives the kind.
Node MakeNodeOf(const Json& json, const SqlText* text) {
  if (!json.is_object()) return {};
  if (json.size() == 1) {
    const auto it = json.begin();
    if (it.value().is_object() && std::isupper(static_cast<unsigned char>(it.key()[0])) != 0) {
      return {&it.value(), it.key(), text};
    }
  }
  return {&json, "", text};
}

/// An omitted location is never 0: a statement's first word has no location.
int LocationOf(const Json& body) {
  const auto it = body.find("location");
  return it != body.end() && it->is_number_integer() ? it->get<int>() : -1;
}

absl::Status SyntaxError(const std::string& text, const std::string& message, int position) {
  if (absl::StartsWith(message, "memory exhausted") || absl::StartsWith(message, "stack depth")) {
    return UserError(sqlstate::kTooComplex, "the statement is nested too deeply", position,
                     "use fewer levels of parentheses or operators");
  }
  // The grammar itself checks the ends of a window's frame.
  if (absl::StartsWith(message, "frame "))
    return UserError(sqlstate::kWindowingError, message, position, "swap the frame's ends");
  const bool at_end =
      position >= static_cast<int>(text.size()) || absl::StrContains(message, "at end of input");
  return UserError(sqlstate::kSyntaxError, message, position, at_end ? "the statement is not complete" : "");
}

absl::StatusOr<SqlText> ScanStatement(const std::string& text) {
  if (text.size() > kLongestStatementBytes) {
    return UserError(sqlstate::kTooComplex, "the statement is longer than 4 MiB", -1);
  }
  if (int bad = 0; !IsCleanUtf8(text, &bad)) {
    return UserError(sqlstate::kBadEncoding, "the statement is not valid UTF-8", bad);
  }
  ScanResult scan = Scan(text);
  if (!scan.error.empty()) return SyntaxError(text, scan.error[0].message, scan.error[0].position);
  if (NestingTokens(text, scan.tokens) > kMostNestingTokens) {
    return UserError(sqlstate::kTooComplex, "the statement is too complex", -1,
                     absl::StrCat("at most ", kMostNestingTokens,
                                  " words and operators, constants, further rows of VALUES and further "
                                  "terms of AND and OR aside; COPY loads many rows"));
  }
  return SqlText(text, std::move(scan.tokens));
}

/// The grammar takes no unquoted JOIN in the name of a setting. Another word of its length replaces that of
/// nam.join, so that positions stay.
constexpr std::string_view kJoin = "join", kJoinStandIn = "joi_";
static_assert(kJoin.size() == kJoinStandIn.size());

/// The position of the JOIN of nam.join in SET, RESET and SHOW; -1: none.
int SettingJoinPosition(const SqlText& text) {
  const int start = text.Start();
  for (const std::string_view command : {"set", "reset", "show"}) {
    if (text.Find({command}, start) != start) continue;
    const int name = SettingPosition(text);
    if (name >= 0 && text.Find({"nam", ".", kJoin}, name) == name) return text.Find({kJoin}, name);
  }
  return -1;
}

/// Restores the setting's own name: nam.join, or nam.join.x, which does not exist.
void RestoreJoin(Json& tree) {
  for (Json& body : tree["stmts"][0]["stmt"]) {
    auto name = body.value("name", std::string());
    const size_t at = name.find(kJoinStandIn);
    if (at != std::string::npos) body["name"] = name.replace(at, kJoin.size(), kJoin);
  }
}

}  // namespace

const Json* Node::Find(const char* name) const {
  if (body_ == nullptr) return nullptr;
  const auto it = body_->find(name);
  return it == body_->end() ? nullptr : &*it;
}

bool Node::Has(const char* name) const {
  return Find(name) != nullptr;
}

Node Node::Field(const char* name) const {
  const Json* field = Find(name);
  return field == nullptr ? Node() : MakeNodeOf(*field, text_);
}

std::vector<Node> Node::List(const char* name) const {
  std::vector<Node> nodes;
  if (const Json* field = Find(name); field != nullptr && field->is_array()) {
    for (const Json& item : *field) nodes.push_back(MakeNodeOf(item, text_));
  }
  return nodes;
}

std::string Node::Text(const char* name) const {
  const Json* field = Find(name);
  return field != nullptr && field->is_string() ? field->get<std::string>() : std::string();
}

bool Node::Flag(const char* name) const {
  const Json* field = Find(name);
  return field != nullptr && field->is_boolean() && field->get<bool>();
}

int64_t Node::Integer(const char* name) const {
  const Json* field = Find(name);
  return field != nullptr && field->is_number_integer() ? field->get<int64_t>() : 0;
}

std::vector<std::string> Node::Names(const char* name) const {
  std::vector<std::string> names;
  for (const Node& node : List(name)) names.push_back(node.Text("sval"));
  return names;
}

int Node::position() const {
  if (body_ == nullptr) return -1;
  const int own = LocationOf(*body_);
  return own >= 0 ? own : Leftmost();
}

int Node::Leftmost() const {
  if (body_ == nullptr) return -1;
  int leftmost = -1;
  std::vector<const Json*> open = {body_};
  while (!open.empty()) {
    const Json* json = open.back();
    open.pop_back();
    if (json->is_object()) {
      const int location = LocationOf(*json);
      if (location >= 0 && (leftmost < 0 || location < leftmost)) leftmost = location;
    }
    for (const Json& child : *json) {
      if (child.is_structured()) open.push_back(&child);
    }
  }
  return leftmost;
}

absl::Status Node::Only(std::initializer_list<std::string_view> fields) const {
  if (body_ == nullptr) return absl::OkStatus();
  for (const auto& [key, value] : body_->items()) {
    if (key == "location" || std::find(fields.begin(), fields.end(), key) != fields.end()) continue;
    return Refusal(
        absl::StrCat(Quote(key), " of ", kind_.empty() ? "this clause" : kind_, " is not supported"),
        position(), "leave this clause out");
  }
  return absl::OkStatus();
}

namespace {

/// The last of a list of names; empty if it is none, as `*`.
std::string LastName(const Json& list) {
  if (!list.is_array() || list.empty() || !list.back().is_object()) return "";
  const auto string = list.back().find("String");
  return string == list.back().end() ? "" : string->value("sval", std::string());
}

void ForObjects(const Node& query, const std::function<void(const Json&)>& visit) {
  std::vector<const Json*> open;
  if (query) open.push_back(query.body());
  while (!open.empty()) {
    const Json* const json = open.back();
    open.pop_back();
    if (json->is_object()) visit(*json);
    for (const Json& child : *json) {
      if (child.is_structured()) open.push_back(&child);
    }
  }
}

}  // namespace

ColumnWords ColumnWordsOf(const Node& query) {
  ColumnWords words;
  std::set<std::string> names;
  ForObjects(query, [&](const Json& object) {
    if (const auto ref = object.find("ColumnRef"); ref != object.end() && ref->contains("fields"))
      names.insert(LastName(ref->at("fields")));
    if (const auto merged = object.find("usingClause"); merged != object.end()) {
      for (const Json& name : *merged) names.insert(LastName(Json::array({name})));
    }
    words.natural = words.natural || (object.contains("isNatural") && object.at("isNatural") == true);
  });
  names.erase("");
  words.names.assign(names.begin(), names.end());
  return words;
}

std::vector<int> ColumnPlacesOf(const Node& query, const std::string& column) {
  std::vector<int> places;
  ForObjects(query, [&](const Json& object) {
    const auto ref = object.find("ColumnRef");
    if (ref == object.end() || !ref->contains("fields") || LastName(ref->at("fields")) != column) return;
    places.push_back(LocationOf(*ref) < 0 ? 0 : LocationOf(*ref));
  });
  return places;
}

absl::StatusOr<ParsedStatement> ParsedStatement::Parse(const std::string& text, StatementTime time) {
  NAM_ASSIGN_OR_RETURN(SqlText scanned, ScanStatement(text));
  scanned.set_time(std::move(time));
  std::string given = text;
  const int join = SettingJoinPosition(scanned);
  if (join >= 0) given.replace(static_cast<size_t>(join), kJoin.size(), kJoinStandIn);
  PgQueryParseResult parsed = pg_query_parse(given.c_str());
  if (parsed.error != nullptr) {
    const std::string message = parsed.error->message;
    const int position = ByteOffset(text, parsed.error->cursorpos);
    pg_query_free_parse_result(parsed);
    given = WithFilesAsTables(text);
    if (given == text) return SyntaxError(text, message, position);
    parsed = pg_query_parse(given.c_str());
    if (parsed.error != nullptr) {
      pg_query_free_parse_result(parsed);
      return SyntaxError(text, message, position);
    }
  }
  auto tree = std::make_shared<Json>(Json::parse(parsed.parse_tree, nullptr, false));
  pg_query_free_parse_result(parsed);
  const auto statements = tree->is_object() ? tree->find("stmts") : tree->end();
  if (statements == tree->end() || !statements->is_array()) {
    return UserError(sqlstate::kSyntaxError, "the statement's parse tree cannot be read", -1);
  }
  if (statements->empty()) {
    return UserError(sqlstate::kSyntaxError, "the statement is empty", -1, "write a SELECT");
  }
  if (statements->size() > 1) {
    const Node second(&(*statements)[1], "", &scanned);
    const auto behind_semicolon = static_cast<int>(second.Integer("stmt_location"));
    return UserError(sqlstate::kSyntaxError, "more than one statement", scanned.Find({}, behind_semicolon),
                     "run one statement at a time");
  }
  if (join >= 0) RestoreJoin(*tree);
  return ParsedStatement(std::make_unique<SqlText>(std::move(scanned)), std::move(tree));
}

Node ParsedStatement::root() const {
  return Node(&(*tree_)["stmts"][0], "", text_.get()).Field("stmt");
}

}  // namespace nam::sql
