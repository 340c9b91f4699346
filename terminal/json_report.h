#pragma once

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "session/session.h"
#include "types/value.h"

namespace nam {

namespace proto {
class Cluster;
class Table;
}  // namespace proto

using Json = nlohmann::ordered_json;

/// The output of every command with --format=json: one object, with its keys in this order.
struct JsonReport {
  std::string command;
  Json config = Json::object();
  Json rows = Json::array();
  Json summary = Json::object();
  /// Fills in `host` and ends with a newline. Replaces invalid UTF-8 by U+FFFD.
  std::string ToString() const;
};

/// Integers of up to 64 bits become numbers; other numbers become strings, which keep every digit.
Json ToJson(const Value& value);
/// Flat objects as a table: one column per key, in order of first appearance; NULL where an object lacks the
/// key.
session::ResultSet TableOf(const Json& rows);
/// Rows without the columns that fit no table: arrays, and texts of several lines.
Json WithoutArrays(Json rows);
/// Name, kernel, processors and memory of this host.
Json HostJson();
/// A memory server's scratch memory.
struct ScratchUse {
  uint64_t used_bytes = 0;     // by queries, now
  uint64_t highest_bytes = 0;  // maximum since the server began
  uint64_t bytes = 0;          // limit: --scratch
};
/// By the id of each memory server that has reported it.
using ScratchUses = std::map<uint32_t, ScratchUse>;

/// `nam status`: rows are members; tables, and a local supervisor's recent actions, are separate keys.
std::string StatusJson(const proto::Cluster& cluster, const ScratchUses& scratch,
                       const std::vector<proto::Table>& tables, const std::vector<std::string>& events);

}  // namespace nam
