// A fuzzer as an ordinary test: its seeds, the files of its corpus, and mutations of both, the same in
// every run. NAM_FUZZ_SEEDS=DIR writes the seeds there instead, for libFuzzer to start from.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

constexpr uint32_t kSeed = 20'240'601;
constexpr int kMutations = 2'000;
std::string corpus_folder;

void Feed(const std::string& input) {
  // It is a copy, so that a sanitizer sees the first byte read beyond it.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::vector<std::string> Corpus() {
  std::vector<std::string> inputs = Seeds();
  std::vector<std::filesystem::path> files;
  if (!corpus_folder.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(corpus_folder))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

void Mutate(std::mt19937& random, const std::vector<std::string>& corpus, std::string& input) {
  const auto below = [&](size_t bound) { return random() % std::max<size_t>(bound, 1); };
  const size_t at = below(input.size() + 1);
  switch (below(6)) {
    case 0:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ 1 << below(8));
      break;
    case 1:
      if (at < input.size()) input[at] = static_cast<char>(random());
      break;
    case 2:  // a length or a count that is too large, or negative
      for (size_t i = at; i < std::min(input.size(), at + 4); ++i) input[i] = static_cast<char>(0xff);
      break;
    case 3:
      input.resize(at);
      break;
    case 4:
      input.insert(at, below(16), static_cast<char>(random()));
      break;
    default: {
      const std::string& other = corpus[below(corpus.size())];
      input = input.substr(0, at) + other.substr(below(other.size() + 1));
    }
  }
}

TEST(Fuzz, SeedsAndCorpus) {
  const std::vector<std::string> corpus = Corpus();
  ASSERT_FALSE(corpus.empty());
  for (const std::string& input : corpus) Feed(input);
  Feed("");
}

TEST(Fuzz, Mutations) {
  const std::vector<std::string> corpus = Corpus();
  std::mt19937 random(kSeed);
  for (int i = 0; i < kMutations; ++i) {
    std::string input = corpus[random() % corpus.size()];
    for (uint32_t n = 1 + random() % 4; n > 0; --n) Mutate(random, corpus, input);
    Feed(input);
  }
}

int WriteSeeds(const std::string& folder) {
  int number = 0;
  for (const std::string& seed : Seeds()) {
    std::ofstream(folder + "/seed_" + std::to_string(number++), std::ios::binary) << seed;
  }
  return 0;
}

}  // namespace
}  // namespace nam::fuzz

int main(int argc, char** argv) {
  if (const char* folder = std::getenv("NAM_FUZZ_SEEDS")) return nam::fuzz::WriteSeeds(folder);
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) nam::fuzz::corpus_folder = argv[1];
  return RUN_ALL_TESTS();
}
