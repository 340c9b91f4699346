#include "execution/expression/program.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/expression/compile.h"
#include "execution/expression/node.h"

namespace nam::execution {

/// The place of a node's arrays in a frame.
struct NodePlace {
  const Node* node = nullptr;
  size_t values = 0, nulls = 0, positions[2] = {};
};

namespace {

/// Gives each node its arrays. An array is free again when the node that reads it has been evaluated, so that
/// deep expressions stay in a few cache lines.
class Placement {
 public:
  /// `root`: an output, whose values are read after others have been evaluated.
  void Add(Node& root) { Put(root); }

  std::vector<NodePlace> places;
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kNullBytes = kChunkRows, kPositionBytes = kChunkRows * sizeof(uint32_t);

  void Put(Node& node) {
    const auto number = static_cast<uint32_t>(places.size());
    node.set_number(number);
    places.push_back({.node = &node});
    const Node::Needs needs = node.needs();
    for (uint8_t i = 0; i < needs.positions; ++i) places[number].positions[i] = Take(kPositionBytes);
    if (needs.while_children_run) TakeResults(number, needs);
    for (const auto& child : node.children()) Put(*child);
    if (!needs.while_children_run) TakeResults(number, needs);
    if (!needs.hands_on) GiveChildren(node);
    for (uint8_t i = 0; i < needs.positions; ++i)
      free_[kPositionBytes].push_back(places[number].positions[i]);
  }

  void TakeResults(uint32_t number, const Node::Needs& needs) {
    places[number].values =
        needs.own ? New(needs.value_bytes * kChunkRows) : Take(needs.value_bytes * kChunkRows);
    if (needs.nulls) places[number].nulls = needs.own ? New(kNullBytes) : Take(kNullBytes);
  }

  void GiveChildren(const Node& node) {
    for (const auto& child : node.children()) {
      const Node::Needs needs = child->needs();
      if (needs.hands_on) GiveChildren(*child);
      if (needs.own) continue;
      const NodePlace& place = places[child->number()];
      free_[needs.value_bytes * kChunkRows].push_back(place.values);
      if (needs.nulls) free_[kNullBytes].push_back(place.nulls);
    }
  }

  size_t New(size_t bytes) { return std::exchange(bytes_, bytes_ + bytes); }
  size_t Take(size_t bytes) {
    std::vector<size_t>& free = free_[bytes];
    if (free.empty()) return New(bytes);
    const size_t offset = free.back();
    free.pop_back();
    return offset;
  }

  size_t bytes_ = 0;  // a multiple of 64, as all sizes are
  std::map<size_t, std::vector<size_t>> free_;
};

}  // namespace

void Frame::Registers::Free::operator()(std::byte* bytes) const {
  std::free(bytes);
}

Frame::Frame() : registers_(std::make_unique<Registers>()) {}
Frame::Frame(Frame&&) noexcept = default;
Frame& Frame::operator=(Frame&&) noexcept = default;
Frame::~Frame() = default;

struct Program::Nodes {
  struct Output {
    NodePtr node;
    std::optional<uint32_t> slot;
  };
  std::vector<Output> outputs;
  std::vector<NodePlace> places;  // by Node::number
  size_t bytes = 0;               // size of a frame
  size_t by_row = 0;
};

Program::Program(std::unique_ptr<const Nodes> nodes) : nodes_(std::move(nodes)) {}
Program::~Program() = default;

absl::StatusOr<std::unique_ptr<const Program>> Program::Compile(std::span<const plan::Expr> outputs,
                                                                const plan::Schema& input, MemoShare* memos) {
  auto nodes = std::make_unique<Nodes>();
  Placement placement;
  for (const plan::Expr& e : outputs) {
    Nodes::Output& output = nodes->outputs.emplace_back();
    NAM_ASSIGN_OR_RETURN(output.node, CompileExpression(e, input, memos, &nodes->by_row));
    if (e.op == plan::Op::kColumn) output.slot = static_cast<uint32_t>(e.column.column);
    placement.Add(*output.node);
  }
  nodes->places = std::move(placement.places);
  nodes->bytes = placement.bytes();
  return std::unique_ptr<const Program>(new Program(std::move(nodes)));
}

Frame Program::NewFrame() const {
  Frame frame;
  Frame::Registers& registers = *frame.registers_;
  const size_t bytes = std::max<size_t>(nodes_->bytes, 64);
  registers.arrays.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
  NAM_CHECK(registers.arrays != nullptr, "no memory for a frame");
  std::memset(registers.arrays.get(), 0, bytes);
  registers.registers.resize(nodes_->places.size());
  for (size_t i = 0; i < nodes_->places.size(); ++i) {
    const NodePlace& place = nodes_->places[i];
    const Node::Needs needs = place.node->needs();
    Register& at = registers.registers[i];
    at.values = registers.arrays.get() + place.values;
    if (needs.nulls) at.nulls = reinterpret_cast<uint8_t*>(registers.arrays.get() + place.nulls);
    for (uint8_t k = 0; k < needs.positions; ++k)
      at.positions[k] = reinterpret_cast<uint32_t*>(registers.arrays.get() + place.positions[k]);
    if (needs.texts) at.texts.resize(kChunkRows);
    place.node->Prepare(at);
  }
  return frame;
}

const Vector* Program::Evaluate(size_t output, Frame& frame, const Chunk& chunk, Selection rows) const {
  return nodes_->outputs[output].node->Evaluate(frame, chunk, rows);
}

std::optional<uint32_t> Program::slot_of(size_t output) const {
  return nodes_->outputs[output].slot;
}
const plan::Bounds& Program::bounds(size_t output) const {
  return nodes_->outputs[output].node->bounds();
}
Physical Program::physical(size_t output) const {
  return nodes_->outputs[output].node->physical();
}
size_t Program::outputs() const {
  return nodes_->outputs.size();
}
size_t Program::by_row_nodes() const {
  return nodes_->by_row;
}

std::optional<uint32_t> SelectWhere(const Program& conditions, Frame& frame, const Chunk& chunk,
                                    Selection rows, uint32_t* kept) {
  if (conditions.outputs() == 0) {
    uint32_t n = 0;
    ForEach(rows, [&](uint32_t p) { kept[n++] = p; });
    return n;
  }
  for (size_t i = 0; i < conditions.outputs() && rows.count > 0; ++i) {
    const Vector* vector = conditions.Evaluate(i, frame, chunk, rows);
    if (vector == nullptr) return std::nullopt;
    uint32_t n = 0;
    ForEach(rows, [&, truth = vector->truth](uint32_t p) {
      kept[n] = p;
      n += truth[p] == kTrue;
    });
    rows = {kept, n};
  }
  return rows.count;
}

}  // namespace nam::execution
