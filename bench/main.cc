// The benchmarks of `nam bench`.

#include <sys/prctl.h>

#include <csignal>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/commands.h"
#include "terminal/command_line.h"

namespace nam::bench {
namespace {

class BenchCommandLine final : public CommandLine {
 public:
  BenchCommandLine()
      : CommandLine("nam bench", "Benchmarks of NAM and of peers, in one process tree", "bench", {}) {
    for (const auto make :
         {CheckoutCommand, SsbCommand, TpchCommand, FabricCommand, PrefetchCommand, MulticastCommand,
          Figure7Command, CalibrateCommand, JoinCommand, AggregateCommand, ChoiceCommand})
      AddCommand(*commands_.emplace_back(make()));
    NameEnvironment(app_);
  }

 private:
  void AddCommand(bench::Command& command) {
    CLI::App* const app =
        Command(command.name(), command.help(), [&command] { return bench::RunCommand(command); });
    for (const Option& option : command.Options())
      std::visit([&](const auto& target) { AddOption(app, option, target); }, option.target);
    if (command.has_charts())
      Add(app, "--html", command.output().html, "write a page with the plots", "FILE");
    AddFormat(app, command.output().format);
  }

  /// The frame checks ranges and words, with a better message.
  template <typename Target>
  static void AddOption(CLI::App* app, const Option& option, const Target& target) {
    if constexpr (std::is_same_v<Target, Option::Bytes>) {
      AddBytes(app, option.name, *target.bytes, option.help);
    } else if constexpr (std::is_same_v<Target, bool*>) {
      app->add_flag(option.name, *target, option.help);
    } else if constexpr (std::is_same_v<Target, std::string*>) {
      const std::string usual = target->empty() ? "" : " (" + *target + ")";
      const std::string type_name =
          option.words.empty() ? option.value_name : CLI::detail::join(option.words, "|");
      Add(app, option.name, *target, option.help + usual, type_name);
    } else if constexpr (std::is_arithmetic_v<std::remove_pointer_t<Target>>) {
      Add(app, option.name, *target, option.help, option.value_name);
    } else {
      CLI::Option* const list = app->add_option(option.name, *target, option.help)->delimiter(',');
      if (!option.words.empty()) list->type_name(CLI::detail::join(option.words, ","));
    }
  }

  std::vector<std::unique_ptr<bench::Command>> commands_;
};

}  // namespace
}  // namespace nam::bench

int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "nam-bench");
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error, not the end
  static nam::bench::BenchCommandLine command_line;
  return command_line.Run(argc, argv);
}
