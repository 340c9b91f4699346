#pragma once

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "proto/catalog.pb.h"
#include "session/session.h"
#include "types/value.h"

namespace nam {

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
/// Bytes of scratch memory that queries have, by memory server that has told it.
using ScratchUse = std::map<uint32_t, uint64_t>;

/// `nam status`: members are the rows; tables stand beside them, and what a local cluster's supervisor did of
/// late.
std::string StatusJson(const proto::Cluster& cluster, const ScratchUse& scratch,
                       const std::vector<proto::Table>& tables, const std::vector<std::string>& events);

}  // namespace nam
