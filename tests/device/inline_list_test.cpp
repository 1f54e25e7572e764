// A list that needs no allocation while it is short, against std::vector.
#include <wye/device/detail/inline_list.hpp>

#include <cstddef>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace {

using wye::detail::InlineList;

/// A value that counts the objects of its kind, and whose text is on the heap.
struct Counted {
  explicit Counted(int n) : text(40, static_cast<char>('a' + n % 26)) { ++alive; }
  Counted(const Counted& other) : text(other.text) { ++alive; }
  Counted(Counted&& other) noexcept : text(std::move(other.text)) { ++alive; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --alive; }
  std::string text;
  static inline int alive = 0;
};

using Few = InlineList<Counted, 3>;

std::vector<std::string> texts(const Few& list) {
  std::vector<std::string> all;
  for (const Counted& one : list) all.push_back(one.text);
  return all;
}

Few make(int n) {
  Few list;
  for (int i = 0; i < n; ++i) list.emplace_back(i);
  return list;
}

}  // namespace

TEST_CASE("an inline list of any length copies and moves its elements, and destroys each once", "[device]") {
  for (int n : {0, 1, 2, 3, 4, 5, 7, 20}) {
    for (int other : {0, 1, 3, 4, 9}) {
      INFO(n << " elements, assigned to a list of " << other);
      Few list = make(n);
      const std::vector<std::string> expected = texts(list);
      REQUIRE(list.size() == static_cast<std::size_t>(n));
      CHECK(list.empty() == (n == 0));
      if (n > 0) CHECK(list.back().text == expected.back());

      const Few copy = list;
      CHECK(texts(copy) == expected);
      Few moved = std::move(list);
      CHECK(texts(moved) == expected);
      CHECK(list.empty());  // NOLINT: a list that was moved from is empty
      list.emplace_back(25);
      CHECK(list.size() == 1);

      Few target = make(other);
      target = copy;
      CHECK(texts(target) == expected);
      target = std::move(moved);
      CHECK(texts(target) == expected);
      target.clear();
      CHECK(target.empty());
      for (int i = 0; i < 5; ++i) target.emplace_back(i);
      CHECK(texts(target) == texts(make(5)));
    }
  }
  CHECK(Counted::alive == 0);
}

TEST_CASE("an inline list adds a copy of its own element", "[device]") {
  Few list = make(1);
  for (int i = 0; i < 6; ++i) list.push_back(list[0]);
  CHECK(texts(list) == std::vector<std::string>(7, std::string(40, 'a')));
}

TEST_CASE("an inline list is unchanged if an element cannot be made", "[device]") {
  struct Throws {
    explicit Throws(bool now) : value(std::make_unique<int>(1)) {
      if (now) throw std::runtime_error("no");
    }
    std::unique_ptr<int> value;
  };
  InlineList<Throws, 2> list;
  for (std::size_t n = 0; n < 5; ++n) {
    CHECK_THROWS(list.emplace_back(true));
    CHECK(list.size() == n);
    list.emplace_back(false);
    for (const Throws& one : list) CHECK(*one.value == 1);
  }
}
