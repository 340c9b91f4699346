#pragma once

#include <string>
#include <string_view>

/// The catalog's names of tables, views and schemas. An entry of `public` is named without its schema; in
/// other schemas a table is `schema.table`, and the schema itself is `schema.`.
namespace nam {

inline constexpr char kPublicSchema[] = "public";

inline std::string QualifiedName(std::string_view schema, std::string_view name) {
  std::string out;
  if (!schema.empty() && schema != kPublicSchema) out.append(schema).append(".");
  return out.append(name);
}

/// The name of a schema's entry in the catalog.
inline std::string SchemaEntryOf(std::string_view schema) {
  return std::string(schema) + ".";
}

inline std::string SchemaOfName(std::string_view qualified) {
  const size_t dot = qualified.find('.');
  return dot == std::string_view::npos ? kPublicSchema : std::string(qualified.substr(0, dot));
}

/// The name without its schema.
inline std::string BareName(std::string_view qualified) {
  const size_t dot = qualified.find('.');
  return std::string(dot == std::string_view::npos ? qualified : qualified.substr(dot + 1));
}

}  // namespace nam
