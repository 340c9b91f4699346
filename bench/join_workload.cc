#include "bench/join_workload.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/tuple_table.h"

namespace nam::bench {

std::string JoinWorkload::TitleOf(size_t index) const {
  const JoinCase& with = at(index);
  const std::string s_tuples =
      with.TuplesOfS() == with.tuples ? "" : absl::StrCat(" and ", CountLabel(with.s_tuples));
  return absl::StrFormat("%s%s tuples, selectivity %g, Zipf %g", CountLabel(with.tuples), s_tuples,
                         with.selectivity, with.zipf);
}

Json JoinWorkload::SettingsOf(size_t index) const {
  const JoinCase& with = at(index);
  return {{"tuples", with.tuples}, {"selectivity", with.selectivity}, {"zipf", with.zipf}};
}

std::string JoinWorkload::sql() const {
  return "SELECT count(*), sum(r.p) + sum(s.p) FROM r, s WHERE r.k = s.k";
}

void JoinWorkload::Make(size_t index) {
  Drop();
  const JoinCase& with = at(index);
  input_ = MakeJoinInput({.r_tuples = with.tuples,
                          .s_tuples = with.TuplesOfS(),
                          .zipf = with.zipf,
                          .selectivity = with.selectivity,
                          .seed = options_.seed,
                          .threads = options_.threads});
}

std::vector<TupleTable> JoinWorkload::tables() const {
  return {{.name = "r", .tuples = input_.r}, {.name = "s", .tuples = input_.s}};
}

Rows JoinWorkload::Expected() const {
  const JoinAnswer answer = ExpectedAnswer(input_);
  const bool none = answer.matches == 0;
  return {{Value::Integer(answer.matches), none ? Value::Null() : Value::Integer(answer.checksum)}};
}

void JoinWorkload::Drop() {
  input_ = {};
}

}  // namespace nam::bench
