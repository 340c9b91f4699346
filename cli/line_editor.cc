#include "cli/line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "terminal/text_width.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace nam::cli {
namespace {

constexpr int kHistoryEntries = 1000;
constexpr size_t kOffersMax = 100;
constexpr char kEndOfInput = '\x04';  // Ctrl-D

class LineEditor final : public LineReader {
 public:
  LineEditor(Completer& completer, Interrupts& interrupts, const std::string& history_file)
      : completer_(completer), interrupts_(interrupts), history_file_(history_file) {
    // libedit converts between bytes and characters by the locale.
    std::setlocale(LC_CTYPE, "");
    if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
    editor_ = el_init("nam", stdin, stdout, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistoryEntries);
    history(history_, &event, H_SETUNIQUE, 1);
    if (!history_file_.empty()) history(history_, &event, H_LOAD, history_file_.c_str());
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT, &LineEditor::Prompt);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_SIGNAL, 0);
    el_set(editor_, EL_GETCFN, &LineEditor::ReadCharacter);
    {
#ifdef __SANITIZE_ADDRESS__
      const __lsan::ScopedDisabler el_end_does_not_free_these_names;
#endif
      el_set(editor_, EL_ADDFN, "nam-complete", "complete a word", &LineEditor::CompleteWord);
    }
    el_set(editor_, EL_BIND, "^I", "nam-complete", nullptr);
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  }

  ~LineEditor() override {
    HistEvent event;
    if (!history_file_.empty()) history(history_, &event, H_SAVE, history_file_.c_str());
    history_end(history_);
    el_end(editor_);
  }

  Result Read(const std::string& prompt, std::string& line) override {
    prompt_ = prompt;
    completer_.Forget();
    el_resize(editor_);
    int count = 0;
    errno = 0;
    const char* text = el_gets(editor_, &count);
    if (interrupts_.Seen()) {
      std::fputs("^C\n", stdout);
      std::fflush(stdout);
      el_reset(editor_);
      // The signal ends a write to a terminal that takes nothing. What was lost was to show the line.
      std::clearerr(stdout);
      return Result::kInterrupted;
    }
    if (text == nullptr || count <= 0) {
      std::fputs("\n", stdout);
      return Result::kEnd;
    }
    line.assign(text, static_cast<size_t>(count));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    return Result::kLine;
  }

  void AddToHistory(const std::string& statement) override {
    std::string entry = statement;
    // One line is easier to edit, but a comment would then swallow the rest.
    if (entry.find("--") == std::string::npos) std::replace(entry.begin(), entry.end(), '\n', ' ');
    HistEvent event;
    history(history_, &event, H_ENTER, entry.c_str());
  }

 private:
  static LineEditor& Self(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<LineEditor*>(self);
  }

  static char* Prompt(EditLine* editor) {
    return Self(editor).prompt_.data();
  }

  /// Reads one character, or -1 on Ctrl-C. libedit's own function would restart its read.
  static int ReadCharacter(EditLine* editor, wchar_t* character) {
    LineEditor& self = Self(editor);
    std::string bytes;
    while (true) {
      pollfd waits[] = {{STDIN_FILENO, POLLIN, 0}, {self.interrupts_.fd(), POLLIN, 0}};
      if (poll(waits, 2, -1) < 0 && errno != EINTR) return -1;
      if (self.interrupts_.Seen()) return -1;
      if (waits[0].revents == 0) continue;
      char byte;
      const ssize_t n = read(STDIN_FILENO, &byte, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return static_cast<int>(n);
      // libedit shows the prompt before it takes the terminal out of line mode. The terminal keeps a Ctrl-D
      // typed in between as a NUL.
      if (byte == '\0') byte = kEndOfInput;
      bytes.push_back(byte);
      const auto lead = static_cast<uint8_t>(bytes[0]);
      const size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
      if (bytes.size() < wanted) continue;
      std::string_view text = bytes;
      *character = static_cast<wchar_t>(NextCodePoint(text));
      return 1;
    }
  }

  static unsigned char CompleteWord(EditLine* editor, int) {
    LineEditor& self = Self(editor);
    const LineInfo* info = el_line(editor);
    const std::string_view line(info->buffer, static_cast<size_t>(info->cursor - info->buffer));
    const size_t word_bytes = line.size() - Completer::WordStart(line);
    const size_t word_characters = DisplayWidth(line.substr(line.size() - word_bytes));
    const std::vector<std::string> offers = self.completer_.Complete(line);
    if (offers.empty()) return CC_REFRESH_BEEP;
    const std::string prefix = Completer::CommonPrefix(offers);
    const std::string insertion = offers.size() == 1 ? offers[0] + " " : prefix;
    if (offers.size() == 1 || prefix.size() > word_bytes) {
      el_deletestr(editor, static_cast<int>(word_characters));
      return el_insertstr(editor, insertion.c_str()) == 0 ? CC_REFRESH : CC_REFRESH_BEEP;
    }
    std::string list = "\n";
    for (size_t i = 0; i < std::min(offers.size(), kOffersMax); ++i) absl::StrAppend(&list, offers[i], "  ");
    if (offers.size() > kOffersMax) list += "…";
    std::printf("%s\n", list.c_str());
    std::fflush(stdout);
    return CC_REDISPLAY;
  }

  Completer& completer_;
  Interrupts& interrupts_;
  const std::string history_file_;
  std::string prompt_;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
};

}  // namespace

std::unique_ptr<LineReader> OpenLineEditor(Completer& completer, Interrupts& interrupts,
                                           const std::string& history_file) {
  return std::make_unique<LineEditor>(completer, interrupts, history_file);
}

}  // namespace nam::cli
