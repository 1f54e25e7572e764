#include <wye/workloads/embed.hpp>

#include <cstdlib>
#include <memory>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;

namespace {

/// Elements of any bits, also of NaN.
template <class T>
std::vector<T> table_of(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> made(count);
  for (T& element : made) {
    const auto word = static_cast<std::uint32_t>(random());
    std::memcpy(static_cast<void*>(&element), &word, sizeof(T));
  }
  return made;
}

/// Tokens below `vocabulary`, and one in eight beyond.
std::vector<std::uint32_t> tokens_of(std::size_t count, std::uint32_t vocabulary, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> tokens(count);
  for (std::uint32_t& token : tokens) {
    const auto number = static_cast<std::uint32_t>(random());
    const std::uint32_t beyond = number % 16 == 0 ? 0xffff'ffff : vocabulary;
    token = number % 8 == 0 || vocabulary == 0 ? beyond : number / 16 % vocabulary;
  }
  return tokens;
}

template <class T>
bool is_embedded(std::size_t vocabulary, std::size_t columns, std::size_t count, std::uint32_t seed,
                 const std::string& leg) {
  const auto table = table_of<T>(vocabulary * columns, seed);
  const auto tokens = tokens_of(count, static_cast<std::uint32_t>(vocabulary), seed + 1);
  auto result = poison<T>(count * columns);
  run(workloads::embed(table, tokens, result), leg);
  return equal_bits(result, reference::embed(std::span<const T>(table), tokens, columns));
}

}  // namespace

TEST_CASE("embed copies rows bit for bit, and makes zeros of tokens that the table lacks",
          "[workloads][embed]") {
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()));
      for (const auto& [rows, columns] : row_shapes) {
        INFO(rows << " x " << columns);
        CHECK(is_embedded<T>(3, columns, rows, 1, leg));
      }
      CHECK(is_embedded<T>(1000, 33, 77, 2, leg));
      CHECK(is_embedded<T>(0, 5, 9, 3, leg));
      std::vector<T> nothing;
      std::vector<std::uint32_t> tokens(3);
      run(workloads::embed(nothing, tokens, nothing), leg);
      const auto table = table_of<T>(10, 1);
      const std::vector<std::uint32_t> no_tokens;
      run(workloads::embed(table, no_tokens, nothing), leg);
    });
}

TEST_CASE("embed is right for random shapes", "[workloads][embed]") {
  std::mt19937 random(23);
  for (std::uint32_t i = 0; i < 200; ++i) {
    const std::size_t vocabulary = random() % 50, columns = 1 + random() % (i % 8 == 0 ? 1500 : 60),
                      count = 1 + random() % 40;
    const auto seed = static_cast<std::uint32_t>(random());
    const std::string& leg = legs()[random() % legs().size()];
    for_float_type(i, [&](auto type) {
      using T = decltype(type);
      INFO(leg << ", " << name(element_type<T>()) << ", " << count << " of " << vocabulary << " x " << columns
               << ", seed " << seed);
      CHECK(is_embedded<T>(vocabulary, columns, count, seed, leg));
    });
  }
}

TEST_CASE("embed changes no element beside arrays that begin at odd elements", "[workloads][embed]") {
  constexpr std::size_t vocabulary = 6, count = 9;
  for (const std::string& leg : legs())
    for_float_types([&](auto type) {
      using T = decltype(type);
      for (const std::size_t columns : {1u, 3u, 67u})
        for (const std::size_t begin : {0u, 1u, 2u, 3u}) {
          INFO(leg << ", " << name(element_type<T>()) << ", " << columns << " columns from element " << begin
                   << " on");
          const std::size_t shift = 3 - begin, size = count * columns;
          const auto rows = table_of<T>(vocabulary * columns + 6, 11), before = table_of<T>(size + 6, 12);
          const auto numbers_of_rows = tokens_of(count + 3, vocabulary, 13);
          const Array<T> table = the_runtime().array(rows), result = the_runtime().array(before);
          const Array<std::uint32_t> tokens = the_runtime().array(numbers_of_rows);
          run(workloads::embed(Read<T>(table).slice(shift, vocabulary * columns),
                               Read<std::uint32_t>(tokens).slice(begin, count),
                               Write<T>(result).slice(begin, size)),
              leg);
          const auto after = result.read();
          REQUIRE(after);
          std::vector<T> expected = before;
          const auto part = reference::embed(std::span(rows).subspan(shift, vocabulary * columns),
                                             std::span(numbers_of_rows).subspan(begin, count), columns);
          std::copy(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(begin));
          CHECK(equal_bits(std::vector<T>(after->begin(), after->end()), expected));
        }
    });
}

TEST_CASE("embed is right for tables beyond 4 GiB", "[workloads][embed][large]") {
  if (!has_leg("cpu")) return;
  constexpr std::size_t columns = 65536, vocabulary = 32768 + 5;
  constexpr auto release = [](void* memory) { std::free(memory); };
  // Of this memory, only the pages exist that are used.
  const std::unique_ptr<void, decltype(release)> memory(std::calloc(vocabulary * columns, sizeof(half)),
                                                        release);
  REQUIRE(memory);
  const std::span<half> table(static_cast<half*>(memory.get()), vocabulary * columns);
  auto result = poison<half>(3 * columns);
  const std::vector<std::uint32_t> tokens{vocabulary - 1, vocabulary, 32768};
  for (std::size_t i = 0; i < columns; ++i) {
    table[(vocabulary - 1) * columns + i] = half::from_bits(static_cast<std::uint16_t>(i));
    table[std::size_t{32768} * columns + i] = half::from_bits(static_cast<std::uint16_t>(i ^ 0x5555));
  }
  run(workloads::embed(table, tokens, result), "cpu");
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < columns; ++i)
    wrong +=
        result[i].bits != i || result[columns + i].bits != 0 || result[2 * columns + i].bits != (i ^ 0x5555);
  CHECK(wrong == 0);
}

TEST_CASE("embed refuses a result that overlaps table", "[workloads][embed]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    std::vector<float> table(1000, 1.0f);
    const std::vector<std::uint32_t> tokens(111);
    auto job = workloads::embed(std::span(table).first(999), tokens, std::span(table).last(999));
    const auto done = the_runtime().submit(std::move(job), {.fallback = Fallback::forbid, .on = leg}).wait();
    REQUIRE_FALSE(done);
    CHECK(done.error() == Errc::invalid_argument);
  }
}

TEST_CASE("embed refuses sizes that do not match", "[workloads][embed]") {
  std::vector<float> table(10), result(12);
  std::vector<std::uint32_t> tokens(5), four(4), no_tokens;
  CHECK(refusal(workloads::embed(table, tokens, result)) ==
        "Result (12 elements) of workload 'embed' has no whole number of elements for 5 tokens.");
  CHECK(refusal(workloads::embed(table, no_tokens, result)) ==
        "Result (12 elements) of workload 'embed' has no whole number of elements for 0 tokens.");
  CHECK(refusal(workloads::embed(table, four, result)) ==
        "Table (10 elements) of workload 'embed' has no whole number of rows of 3 columns.");
}
