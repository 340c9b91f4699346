#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/expression.h"
#include "plan/function.h"
#include "sql/parameters.h"
#include "sql/statement_time.h"
#include "types/time_zone.h"

namespace nam::sql {

/// An expression's type for messages: without lengths and scales, which are never the error.
std::string KindName(const plan::Expr& expr);

/// A date becomes a timestamp beside one, both one with time zone beside that. 0: another type.
int RankOfTime(const Type& type);

/// Whether PostgreSQL converts on assignment: among dates, times and timestamps.
bool ConvertsTimes(TypeKind from, TypeKind to);

/// Builds typed expressions by the rules of expression.h and folds constants.
///
/// A string literal has no type until its context gives it one (`d < '1994-01-01'`), and neither has NULL.
/// Until then it is a kLiteral of type kNull (with text, or null); ResolveType ends that. No node that this
/// class builds contains an untyped literal.
///
/// An error while folding is the user's error (see DeferFolding), unless the constant may never be evaluated
/// (in a branch of CASE, after the first operand of AND and OR): then it stays as it is and fails when it is
/// evaluated.
class ExpressionBuilder {
 public:
  /// While one exists, constants may never be evaluated.
  class Conditional {
   public:
    explicit Conditional(ExpressionBuilder& builder) : builder_(builder) { ++builder_.conditional_; }
    ~Conditional() { --builder_.conditional_; }
    Conditional(const Conditional&) = delete;
    Conditional& operator=(const Conditional&) = delete;

   private:
    ExpressionBuilder& builder_;
  };

  static plan::Expr UntypedString(std::string text, int position);
  static plan::Expr UntypedNull(int position);
  static bool IsUntyped(const plan::Expr& expr) {
    return expr.op == plan::Op::kLiteral && expr.type.kind == TypeKind::kNull;
  }

  /// The zone of timestamps that are written without one; UTC before this call.
  void UseZone(const std::string& zone) { zone_ = zone; }
  /// ResolveType sets their types; borrowed.
  void UseParameters(Parameters* parameters) { parameters_ = parameters; }

  /// Defers a constant's error to `failure`, the first one, until the whole statement is bound: PostgreSQL
  /// computes constants only then. Borrowed.
  void DeferFolding(absl::Status* failure) { folding_ = failure; }

  /// Gives the values of `now` and `today` as dates and timestamps; without it they are refused.
  void UseTime(const StatementTime& time) {
    now_us_ = time.now_us;
    depends_on_time_ = time.depends;
  }

  /// Texts of literals that became dates or times, by their positions: each independent of time and zone.
  /// Filled by ResolveType and Cast; borrowed.
  using FixedTimes = std::map<int, std::string>;
  void UseFixedTimes(FixedTimes* times) { fixed_times_ = times; }

  /// Gives an untyped literal the kind of `type`, parsing its text, and a parameter this type: 42P08 if it
  /// already has one of another kind. Leaves other expressions alone.
  absl::Status ResolveType(plan::Expr& expr, const Type& type) const;
  /// Makes an untyped literal a string; leaves an untyped parameter alone.
  static void ResolveAsString(plan::Expr& expr);

  absl::StatusOr<plan::Expr> Compare(plan::Op op, plan::Expr a, plan::Expr b, int position) const;
  absl::StatusOr<plan::Expr> Arithmetic(plan::Op op, plan::Expr a, plan::Expr b, int position) const;
  /// Makes a constant numeric a decimal of its own scale; leaves others alone.
  static void AsKnownScale(plan::Expr& number);
  /// Makes a whole number a decimal; leaves other numbers alone.
  absl::Status AsDecimal(plan::Expr& number) const;
  absl::StatusOr<plan::Expr> Negate(plan::Expr a, int position) const;
  /// `width`: the written bytes of an integer type, or digits of a decimal; -1: the maximum.
  absl::StatusOr<plan::Expr> Cast(plan::Expr a, const Type& type, int position, int width = -1) const;
  /// The same, of a type that is declared otherwise than these tell.
  absl::StatusOr<plan::Expr> Cast(plan::Expr a, const Type& type, int position, int width,
                                  SqlType declared) const;
  absl::StatusOr<plan::Expr> Junction(plan::Op op, std::vector<plan::Expr> operands, int position) const;
  absl::StatusOr<plan::Expr> Not(plan::Expr a, int position) const;
  absl::StatusOr<plan::Expr> IsNull(plan::Expr a, int position) const;
  absl::StatusOr<plan::Expr> In(plan::Expr a, std::vector<plan::Expr> items, int position);
  absl::StatusOr<plan::Expr> Like(plan::Expr a, plan::Expr pattern, int position) const;
  /// [when, then, …, else]; whens are booleans. Of text and varchar the first decides, in a CASE that is
  /// written as such (`by_else`) its ELSE.
  absl::StatusOr<plan::Expr> Case(std::vector<plan::Expr> parts, int position, bool by_else = false) const;
  absl::StatusOr<plan::Expr> Extract(plan::Op op, plan::Expr date, int position) const;
  /// The timestamp on clocks of the session's zone from which EXTRACT takes the field, or another part of a
  /// timestamp with time zone that the field needs.
  absl::StatusOr<plan::Expr> FieldSource(std::string_view field, plan::Expr time, int position) const;
  /// The field of FieldSource's result for a field of a timestamp with time zone.
  static std::string UnzonedField(std::string_view field);

  static bool IsFunction(std::string_view name);
  /// 42883; `similar`: a further hint.
  static absl::Status NoSuchFunction(std::string_view name, std::span<const plan::Expr> operands,
                                     int position, const std::string& similar = {});
  /// The function of this name that takes the operands with the fewest conversions.
  absl::StatusOr<plan::Expr> Call(std::string_view name, std::vector<plan::Expr> operands,
                                  int position) const;
  absl::StatusOr<plan::Expr> Extreme(bool greatest, std::vector<plan::Expr> operands, int position) const;
  /// a || b
  absl::StatusOr<plan::Expr> Concatenate(plan::Expr a, plan::Expr b, int position) const;

  /// Of decimals that meet: all get the largest number of decimals, or each keeps its own, as a numeric.
  enum class Scales { kLargest, kOwn };
  /// Gives one common type to values that meet in one place (branches, a comparison's sides).
  absl::Status Unify(const std::vector<plan::Expr*>& values, const char* place,
                     Scales scales = Scales::kLargest) const;

  /// A copy of an operand that occurs twice after lowering. Bounded over the statement: nested copies would
  /// double without end.
  absl::StatusOr<plan::Expr> Duplicate(const plan::Expr& expr);

 private:
  absl::StatusOr<plan::Expr> Fold(plan::Expr expr) const;
  /// Converts one of two compared values: a date that meets a timestamp becomes one, a number that meets
  /// double precision likewise.
  absl::Status Meet(plan::Expr& expr, const plan::Expr& other) const;
  ///  + - * / with an interval, and differences of timestamps.
  absl::StatusOr<plan::Expr> TimeArithmetic(plan::Op op, plan::Expr a, plan::Expr b, int position) const;
  /// Takes operands of the function's types.
  absl::StatusOr<plan::Expr> FunctionNode(plan::Function function, std::vector<plan::Expr> operands,
                                          int position) const;
  /// A cast from or to a timestamp with time zone.
  absl::StatusOr<plan::Expr> CastZoned(plan::Expr a, const Type& type, int position) const;
  /// Converts a constant with time zone that meets a timestamp without one, where clocks never turn back: so
  /// conditions on columns stay conditions on them.
  absl::Status MeetUnzoned(plan::Expr& expr, const plan::Expr& other) const;
  /// timezone(zone, time)
  absl::StatusOr<plan::Expr> AtZone(std::string_view zone, plan::Expr time, int position) const;
  /// Adds the session's zone to the operands of a call that needs it for a timestamp with time zone.
  absl::Status GiveZone(std::string_view name, std::vector<plan::Expr>& operands, int position) const;
  absl::StatusOr<plan::Expr> Converted(plan::Expr a, const Type& type, int position, int width) const;
  absl::StatusOr<plan::Expr> CutText(plan::Expr a, const Type& type, int position) const;
  /// A char(n) with its blanks.
  absl::StatusOr<plan::Expr> PaddedText(plan::Expr text, int position) const;

  /// Replaces words for days in a literal that becomes a date or timestamp.
  void ResolveDay(plan::Expr& text, const Type& type) const;
  absl::Status ResolveText(plan::Expr& text, const Type& type) const;

  Parameters* parameters_ = nullptr;
  absl::Status* folding_ = nullptr;
  std::optional<int64_t> now_us_;
  bool* depends_on_time_ = nullptr;  // StatementTime::depends
  FixedTimes* fixed_times_ = nullptr;
  std::string zone_ = kUtc;
  int conditional_ = 0;
  size_t duplicated_nodes_ = 0;
};

}  // namespace nam::sql
