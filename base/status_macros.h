#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// Returns from the enclosing function when `expression` is not OK.
#define NAM_RETURN_IF_ERROR(expression)                             \
  do {                                                              \
    if (absl::Status nam_status = (expression); !nam_status.ok()) { \
      return nam_status;                                            \
    }                                                               \
  } while (false)

#define NAM_CONCAT_INNER(a, b) a##b
#define NAM_CONCAT(a, b) NAM_CONCAT_INNER(a, b)

/// `NAM_ASSIGN_OR_RETURN(auto x, F());` declares or assigns x, or returns F()'s error.
#define NAM_ASSIGN_OR_RETURN(lhs, expression) \
  NAM_ASSIGN_OR_RETURN_INNER(NAM_CONCAT(nam_status_or_, __LINE__), lhs, expression)
#define NAM_ASSIGN_OR_RETURN_INNER(result, lhs, expression) \
  auto result = (expression);                               \
  if (!result.ok()) return std::move(result).status();      \
  lhs = std::move(result).value()
