#include "execution/expression/node.h"

namespace nam::execution {
namespace {

/// A byte a position, 1 where NULL, of vectors of any form.
template <typename Body>
void WithNulls(const Vector& vector, Body&& body) {
  if (vector.physical == Physical::kTruth) {
    body([truth = vector.truth](uint32_t p) { return static_cast<uint8_t>(truth[p] == kUnknown); });
  } else {
    body([nulls = vector.nulls](uint32_t p) { return nulls[p]; });
  }
}
bool HasNulls(const Vector& vector) {
  return vector.physical == Physical::kTruth || vector.nulls != nullptr;
}

}  // namespace

void UniteNulls(const Vector& a, const Vector& b, Selection rows, uint8_t* nulls, Vector& out) {
  if (!HasNulls(a)) return CopyNulls(b, rows, nulls, out);
  if (!HasNulls(b)) return CopyNulls(a, rows, nulls, out);
  WithNulls(a, [&](auto null_a) {
    WithNulls(b, [&](auto null_b) { ForEach(rows, [=](uint32_t p) { nulls[p] = null_a(p) | null_b(p); }); });
  });
  out.nulls = nulls;
}

void CopyNulls(const Vector& a, Selection rows, uint8_t* nulls, Vector& out) {
  out.nulls = nullptr;
  if (!HasNulls(a)) return;
  WithNulls(a, [&](auto null_a) { ForEach(rows, [=](uint32_t p) { nulls[p] = null_a(p); }); });
  out.nulls = nulls;
}

}  // namespace nam::execution
