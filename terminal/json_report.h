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

/// What every command prints with --format=json: one object, in this order.
struct JsonReport {
  std::string command;
  Json config = Json::object();
  Json rows = Json::array();
  Json summary = Json::object();
  /// With `host` filled in, and a newline at the end. What is not UTF-8 becomes U+FFFD.
  std::string ToString() const;
};

/// Integers of up to 64 bits as numbers; other numbers as strings, which keep every digit.
Json ToJson(const Value& value);
/// Flat objects as a table: a column for each key, in the order in which they first appear; NULL where a row
/// has none.
session::ResultSet TableOf(const Json& rows);
/// Name, kernel, processors and memory of this host.
Json HostJson();
/// A memory server's scratch memory.
struct ScratchUse {
  uint64_t used_bytes = 0;     // by queries, now
  uint64_t highest_bytes = 0;  // the most since the server began
  uint64_t bytes = 0;          // the most that it may be: --scratch
};
/// Of the memory servers that have told it, by id.
using ScratchUses = std::map<uint32_t, ScratchUse>;

/// `nam status`: members are the rows; tables stand beside them, and what a local cluster's supervisor did of
/// late.
std::string StatusJson(const proto::Cluster& cluster, const ScratchUses& scratch,
                       const std::vector<proto::Table>& tables, const std::vector<std::string>& events);

}  // namespace nam
