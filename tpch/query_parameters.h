#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace nam::tpch {

/// Texts by the names that stand for them in the queries: `Q1.DELTA`.
using ParameterTexts = std::map<std::string, std::string>;

/// All queries' substitution parameters: see Queries.
ParameterTexts MakeParameters(double scale_factor, std::optional<uint64_t> seed);

}  // namespace nam::tpch
