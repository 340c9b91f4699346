#include "catalog/fabric_constants.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"

namespace nam::catalog {
namespace {

using F = FabricConstants;

constexpr double kLeastBytePs = 0.1, kMostBytePs = 1e6;   // 10 TB/s to 1 MB/s
constexpr double kLeastRowPs = 10, kMostRowPs = 1e7;      // 10 µs
constexpr double kLeastOncePs = 1e3, kMostOncePs = 1e13;  // 1 ns to 10 s
constexpr double kLeastCache = 1 << 12, kMostCache = 1ULL << 40;

constexpr std::array kTable = {
    FabricConstant{"memory_byte_ps", &F::memory_byte_ps, kLeastBytePs, kMostBytePs},
    FabricConstant{"read_byte_ps", &F::read_byte_ps, kLeastBytePs, kMostBytePs},
    FabricConstant{"write_2k_byte_ps", &F::write_2k_byte_ps, kLeastBytePs, kMostBytePs},
    FabricConstant{"write_64k_byte_ps", &F::write_64k_byte_ps, kLeastBytePs, kMostBytePs},
    FabricConstant{"send_byte_ps", &F::send_byte_ps, kLeastBytePs, kMostBytePs},
    FabricConstant{"socket_byte_ps", &F::socket_byte_ps, kLeastBytePs, kMostBytePs},
    FabricConstant{"l2_access_ps", &F::l2_access_ps, kLeastRowPs, kMostRowPs},
    FabricConstant{"l3_access_ps", &F::l3_access_ps, kLeastRowPs, kMostRowPs},
    FabricConstant{"memory_access_ps", &F::memory_access_ps, kLeastRowPs, kMostRowPs},
    FabricConstant{"l2_bytes", &F::l2_bytes, kLeastCache, kMostCache},
    FabricConstant{"l3_bytes", &F::l3_bytes, kLeastCache, kMostCache},
    FabricConstant{"partition_row_ps", &F::partition_row_ps, kLeastRowPs, kMostRowPs},
    FabricConstant{"build_row_ps", &F::build_row_ps, kLeastRowPs, kMostRowPs},
    FabricConstant{"probe_row_ps", &F::probe_row_ps, kLeastRowPs, kMostRowPs},
    FabricConstant{"direct_build_row_ps", &F::direct_build_row_ps, kLeastRowPs, kMostRowPs},
    FabricConstant{"direct_probe_row_ps", &F::direct_probe_row_ps, kLeastRowPs, kMostRowPs},
    FabricConstant{"bloom_row_ps", &F::bloom_row_ps, kLeastRowPs, kMostRowPs},
    FabricConstant{"group_row_ps", &F::group_row_ps, kLeastRowPs, kMostRowPs},
    FabricConstant{"combine_group_ps", &F::combine_group_ps, kLeastRowPs, kMostRowPs},
    FabricConstant{"finish_row_ps", &F::finish_row_ps, kLeastRowPs, kMostRowPs},
    FabricConstant{"call_ps", &F::call_ps, kLeastOncePs, kMostOncePs},
    FabricConstant{"stage_ps", &F::stage_ps, kLeastOncePs, kMostOncePs},
    FabricConstant{"slab_ps", &F::slab_ps, kLeastOncePs, kMostOncePs},
    FabricConstant{"part_ps", &F::part_ps, kLeastOncePs, kMostOncePs},
};

}  // namespace

std::span<const FabricConstant> FabricConstantTable() {
  return kTable;
}

proto::FabricConstants ToProto(const std::string& fabric, const FabricConstants& constants) {
  proto::FabricConstants out;
  out.set_fabric(fabric);
  for (const FabricConstant& constant : kTable) {
    proto::FabricConstant& one = *out.add_constants();
    one.set_name(constant.name);
    one.set_value(constants.*constant.field);
  }
  return out;
}

absl::StatusOr<FabricConstants> FromProto(const proto::FabricConstants& constants) {
  FabricConstants out;
  std::array<bool, kTable.size()> seen{};
  for (const proto::FabricConstant& one : constants.constants()) {
    const auto* const known =
        std::find_if(kTable.begin(), kTable.end(), [&](const auto& c) { return one.name() == c.name; });
    if (known == kTable.end())
      return absl::InvalidArgumentError("the fabric constants contain an unknown name");
    bool& again = seen[static_cast<size_t>(known - kTable.begin())];
    if (again) return absl::InvalidArgumentError(absl::StrFormat("%s is there twice", known->name));
    again = true;
    // Written so that NaN fails, too.
    if (!(one.value() >= known->least && one.value() <= known->most)) {
      return absl::InvalidArgumentError(absl::StrFormat("%s is %g, not from %g to %g", known->name,
                                                        one.value(), known->least, known->most));
    }
    out.*known->field = one.value();
  }
  return out;
}

}  // namespace nam::catalog
