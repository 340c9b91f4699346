#include "fabric/sim/nic_model.h"

#include <toml++/toml.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace nam::fabric::sim {
namespace {

struct Generation {
  const char* name;
  int64_t port_bytes_per_us;  // four lanes, without the line code
  int64_t messages_per_us;
  int64_t write_ns;
  int64_t read_ns;
  int64_t atomic_ns;
};

/// Those after the first, which is the model's defaults.
constexpr std::array kLaterGenerations = {
    Generation{"edr", 12'100, 150, 800, 1'700, 350},
    Generation{"hdr", 24'200, 215, 700, 1'500, 300},
    Generation{"ndr", 49'200, 330, 600, 1'300, 250},
};

/// A field of the model: its name in the file, and its range.
template <typename T>
struct Field {
  const char* name;
  T NicModel::*member;
  int64_t min;
  int64_t max;
};

constexpr int64_t kAny = 1'000'000'000;
constexpr std::array kSmall = {
    Field<uint32_t>{"ports", &NicModel::ports, 1, 64},
    Field<uint32_t>{"mtu_bytes", &NicModel::mtu_bytes, 256, 65'536},
    Field<uint32_t>{"packet_overhead_bytes", &NicModel::packet_overhead_bytes, 0, 4096},
    Field<uint32_t>{"datagram_overhead_bytes", &NicModel::datagram_overhead_bytes, 0, 4096},
    Field<uint32_t>{"queue_depth_max", &NicModel::queue_depth_max, 1, 65'536},
    Field<uint32_t>{"reads_in_flight_max", &NicModel::reads_in_flight_max, 1, 65'536},
};
constexpr std::array kLarge = {
    Field<int64_t>{"port_bytes_per_us", &NicModel::port_bytes_per_us, 1, kAny},
    Field<int64_t>{"messages_per_us", &NicModel::messages_per_us, 1, 1'000'000},
    Field<int64_t>{"write_ns", &NicModel::write_ns, 1, kAny},
    Field<int64_t>{"read_ns", &NicModel::read_ns, 1, kAny},
    Field<int64_t>{"atomic_ns", &NicModel::atomic_ns, 0, kAny},
    Field<int64_t>{"doorbell_ns", &NicModel::doorbell_ns, 0, kAny},
    Field<int64_t>{"post_ns", &NicModel::post_ns, 0, kAny},
    Field<int64_t>{"poll_ns", &NicModel::poll_ns, 1, kAny},
    Field<int64_t>{"datagram_ns", &NicModel::datagram_ns, 0, kAny},
};

absl::Status CheckRange(const char* name, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("network card model: %s is %d, and must be %d to %d", name, value, min, max));
}

template <typename Fields>
absl::Status ReadFields(const Fields& fields, const toml::table& table, NicModel* model) {
  for (const auto& field : fields) {
    const toml::node* node = table.get(field.name);
    if (node == nullptr) continue;
    const auto value = node->value_exact<int64_t>();
    if (!value.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("network card model: %s must be a whole number", field.name));
    }
    NAM_RETURN_IF_ERROR(CheckRange(field.name, *value, field.min, field.max));
    model->*field.member = static_cast<std::remove_reference_t<decltype(model->*field.member)>>(*value);
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const toml::table& table) {
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    bool known = name == "name" || name == "base";
    for (const auto& field : kSmall) known = known || name == field.name;
    for (const auto& field : kLarge) known = known || name == field.name;
    if (!known)
      return absl::InvalidArgumentError(absl::StrFormat("network card model: no field \"%s\"", name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NicModel> NicModel::Named(const std::string& name) {
  NicModel model;
  if (name == model.name) return model;
  for (const Generation& generation : kLaterGenerations) {
    if (name != generation.name) continue;
    model.name = name;
    model.port_bytes_per_us = generation.port_bytes_per_us;
    model.messages_per_us = generation.messages_per_us;
    model.write_ns = generation.write_ns;
    model.read_ns = generation.read_ns;
    model.atomic_ns = generation.atomic_ns;
    return model;
  }
  return absl::NotFoundError(
      absl::StrFormat("no network card model \"%s\": fdr, edr, hdr, ndr, or a TOML file's path", name));
}

absl::StatusOr<NicModel> NicModel::FromFile(const std::string& path) {
  const toml::parse_result parsed = toml::parse_file(path);
  if (!parsed) {
    return absl::InvalidArgumentError(absl::StrFormat("network card model %s, line %d: %s", path,
                                                      parsed.error().source().begin.line,
                                                      std::string(parsed.error().description())));
  }
  const toml::table& table = parsed.table();
  NAM_RETURN_IF_ERROR(CheckNames(table));
  NAM_ASSIGN_OR_RETURN(NicModel model, Named(table["base"].value_or(NicModel().name)));
  model.name = table["name"].value_or(path);
  NAM_RETURN_IF_ERROR(ReadFields(kSmall, table, &model));
  NAM_RETURN_IF_ERROR(ReadFields(kLarge, table, &model));
  NAM_RETURN_IF_ERROR(model.Validate());
  return model;
}

absl::StatusOr<NicModel> NicModel::Parse(const std::string& name_or_path) {
  const bool path = name_or_path.find_first_of("./") != std::string::npos;
  return path ? FromFile(name_or_path) : Named(name_or_path);
}

absl::Status NicModel::Validate() const {
  for (const auto& field : kSmall) {
    NAM_RETURN_IF_ERROR(CheckRange(field.name, this->*field.member, field.min, field.max));
  }
  for (const auto& field : kLarge) {
    NAM_RETURN_IF_ERROR(CheckRange(field.name, this->*field.member, field.min, field.max));
  }
  // A write's one-way time is half its latency, and the rest includes the poll; a read takes two ways.
  NAM_RETURN_IF_ERROR(CheckRange("write_ns", write_ns, 2 * poll_ns + 2, kAny));
  return CheckRange("read_ns", read_ns, write_ns + poll_ns, kAny);
}

}  // namespace nam::fabric::sim
