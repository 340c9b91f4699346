#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace nam::tpch {

/// Parameter values by their names in the queries: `Q1.DELTA`.
using ParameterTexts = std::map<std::string, std::string>;

/// The substitution parameters of all queries: see Queries.
ParameterTexts MakeParameters(double scale_factor, std::optional<uint64_t> seed);

}  // namespace nam::tpch
