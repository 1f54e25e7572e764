#include <wye/base/result.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using wye::Errc;
using wye::Error;
using wye::Exception;
using wye::Result;

namespace {

Error broken() { return Error(Errc::io, "The tape is torn."); }

/// A value that counts its copies.
struct Counted {
  int copies = 0;
  Counted() = default;
  Counted(const Counted& other) : copies(other.copies + 1) {}
  Counted(Counted&&) noexcept = default;
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) noexcept = default;
};

}  // namespace

TEST_CASE("a result holds a value or an error", "[base]") {
  const Result<int> value = 42;
  REQUIRE(value);
  CHECK(value.has_value());
  CHECK(*value == 42);
  CHECK(value.value() == 42);
  CHECK(value.value_or(7) == 42);

  const Result<int> error = broken();
  REQUIRE_FALSE(error);
  CHECK(error.error() == Errc::io);
  CHECK(error.error().sentence() == "The tape is torn.");
  CHECK(error.value_or(7) == 7);
}

TEST_CASE("a result is copied and moved as its value is", "[base]") {
  Result<std::string> first = std::string("a string long enough to live on the heap");
  Result<std::string> copy = first;
  CHECK(*copy == *first);
  const Result<std::string> moved = std::move(first);
  CHECK(*moved == *copy);
  copy = broken();
  CHECK(copy.error() == Errc::io);
  copy = moved;
  REQUIRE(copy);
  CHECK(*copy == *moved);
}

TEST_CASE("a move-only value can be moved out of a result", "[base]") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  REQUIRE(result);
  CHECK(**result == 5);
  const std::unique_ptr<int> taken = *std::move(result);
  CHECK(*taken == 5);
  CHECK(*Result<std::unique_ptr<int>>(std::make_unique<int>(6)).value() == 6);
}

TEST_CASE("reading a result copies nothing, and moving out of it copies nothing", "[base]") {
  Result<Counted> result = Counted();
  CHECK(result->copies == 0);
  CHECK(result.value().copies == 0);
  const Counted taken = *std::move(result);
  CHECK(taken.copies == 0);
  const auto& kept = *Result<Counted>(Counted());  // by value: the reference does not dangle
  CHECK(kept.copies == 0);
}

TEST_CASE("a value is made from types that convert to it", "[base]") {
  const Result<std::string> text = "text";
  CHECK(*text == "text");
  const Result<std::optional<int>> nothing = std::optional<int>();
  REQUIRE(nothing);
  CHECK_FALSE(nothing->has_value());
  const Result<std::shared_ptr<const int>> pointer = std::make_shared<int>(3);
  CHECK(**pointer == 3);
  const Result<bool> no = false;
  REQUIRE(no);
  CHECK_FALSE(*no);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<Result<int>, Result<bool>>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<std::string, Result<int>>);
}

TEST_CASE("the value of an error throws the error", "[base]") {
  Result<std::vector<int>> result = broken().with_context("while rewinding");
  CHECK_THROWS_AS(result.value(), Exception);
  CHECK_THROWS_AS(*result, Exception);
  CHECK_THROWS_AS(result->size(), Exception);
  CHECK_THROWS_AS(std::move(result).value(), Exception);
  try {
    std::as_const(result).value();
    FAIL("nothing was thrown");
  } catch (const std::exception& thrown) {
    CHECK(std::string(thrown.what()) == "io: The tape is torn.\n  while rewinding");
    CHECK(dynamic_cast<const Exception&>(thrown).error() == Errc::io);
  }
}

TEST_CASE("a Result<void> is success or an error", "[base]") {
  const Result<void> done;
  CHECK(done);
  CHECK_NOTHROW(done.value());
  const Result<void> failed = broken();
  REQUIRE_FALSE(failed);
  CHECK(failed.error().sentence() == "The tape is torn.");
  CHECK_THROWS_AS(failed.value(), Exception);
  Result<void> copy = failed;
  CHECK_FALSE(copy);
  copy = done;
  CHECK(copy);
}

TEST_CASE("the error of a result that holds a value is internal", "[base]") {
  CHECK(Result<int>(1).error() == Errc::internal);
  const Result<int> value = 1;
  CHECK(value.error() == Errc::internal);
  CHECK(Result<void>().error() == Errc::internal);
}
