#include "session/shown_settings.h"

#include <utility>

#include "base/status_macros.h"

namespace nam::session {

absl::StatusOr<ResultSet> Show(const Settings& settings, const sql::ShowStatement& statement) {
  ResultSet result;
  result.command = "SHOW";
  if (statement.name.empty()) {
    for (const char* const column : {"name", "setting", "description"})
      result.columns.push_back({column, Type::String()});
    for (Settings::Shown& setting : settings.ShowAll()) {
      result.rows.push_back({Value::String(std::move(setting.name)), Value::String(std::move(setting.value)),
                             Value::String(std::move(setting.description))});
    }
    return result;
  }
  NAM_ASSIGN_OR_RETURN(Settings::Shown setting, settings.Show(statement));
  result.columns.push_back({setting.name, Type::String()});
  result.rows.push_back({Value::String(std::move(setting.value))});
  return result;
}

}  // namespace nam::session
