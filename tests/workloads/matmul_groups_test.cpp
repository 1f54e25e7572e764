// Products of unlike shapes in one job.
#include <wye/workloads/matmul.hpp>

#include <random>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
using workloads::Activation;
using workloads::MatmulEpilogue;
using workloads::MatmulGroup;
using workloads::MatmulOptions;
using workloads::MatmulShape;

namespace {

/// The memory of a group.
template <class T, class R>
struct Matrices {
  std::vector<T> a, b;
  std::vector<R> bias, residual, c, alone;
  MatmulShape shape;
  MatmulOptions options;
  MatmulEpilogue<R> epilogue;

  MatmulGroup<T, R> group() { return {a, b, c, shape, options, epilogue}; }
  Job job_alone() {
    if constexpr (std::is_integral_v<R>)
      return workloads::matmul(a, b, alone, shape, options);
    else
      return workloads::matmul(a, b, alone, shape, options, epilogue);
  }
};

template <class T, class R>
std::vector<Matrices<T, R>> random_groups(std::size_t count, std::mt19937& random) {
  const auto seed = [&] { return static_cast<std::uint32_t>(random()); };
  std::vector<Matrices<T, R>> made(count);
  for (Matrices<T, R>& m : made) {
    m.shape = {random() % 90, 1 + random() % 70, random() % 50};
    m.options.transposed_a = random() % 2 != 0;
    m.options.transposed_b = random() % 2 != 0;
    m.options.batch = 1 + (random() % 4 == 0 ? random() % 3 : 0);
    m.a = elements<T>(m.options.batch * m.shape.rows * m.shape.inner, seed());
    m.b = elements<T>(m.options.batch * m.shape.inner * m.shape.columns, seed());
    const std::size_t size = m.options.batch * m.shape.rows * m.shape.columns;
    m.c = m.alone = poison<R>(size);
    if constexpr (!std::is_integral_v<R>) {
      m.bias = elements<R>(m.shape.columns, seed());
      m.residual = elements<R>(size, seed());
      m.epilogue.activation = static_cast<Activation>(random() % 5);
      if (random() % 2 != 0) m.epilogue.bias = m.bias;
      if (random() % 2 != 0) m.epilogue.residual = m.residual;
    }
  }
  return made;
}

template <class T, class R>
void groups_have_the_bits_of_products(const std::string& leg, std::size_t count, std::uint32_t seed) {
  INFO(leg << ", " << count << " groups, " << sizeof(T) << " and " << sizeof(R) << " bytes");
  std::mt19937 random(seed);
  auto all = random_groups<T, R>(count, random);
  std::vector<MatmulGroup<T, R>> groups;
  for (auto& one : all) groups.push_back(one.group());
  const auto job = workloads::matmul(std::span<const MatmulGroup<T, R>>(groups));
  CHECK(job.size() == count);
  run(job, leg);
  for (std::size_t i = 0; i < count; ++i) {
    INFO("group " << i);
    run(all[i].job_alone(), leg);
    CHECK(equal_bits(all[i].c, all[i].alone));
  }
}

}  // namespace

TEST_CASE("groups of matmul have the bits of the products alone", "[workloads][matmul][groups]") {
  for (const std::string& leg : legs())
    for (std::size_t count : {1u, 2u, 17u}) {
      groups_have_the_bits_of_products<float, float>(leg, count, 1);
      groups_have_the_bits_of_products<half, float>(leg, count, 2);
      groups_have_the_bits_of_products<half, half>(leg, count, 3);
      groups_have_the_bits_of_products<bfloat16, float>(leg, count, 4);
      groups_have_the_bits_of_products<bfloat16, bfloat16>(leg, count, 5);
      groups_have_the_bits_of_products<std::int8_t, std::int32_t>(leg, count, 6);
    }
}

TEST_CASE("groups of matmul share matrices and read the results of groups before them",
          "[workloads][matmul][groups]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto a = elements<float>(5 * 40, 7), b = elements<float>(40 * 30, 8),
               d = elements<float>(30 * 7, 9);
    auto c = poison<float>(5 * 30), e = poison<float>(5 * 7), alone = c, last = e;
    const Array<float> between = the_runtime().array(c);
    const MatmulGroup<float, float> groups[] = {
        {a, b, c, {5, 30, 40}}, {a, b, between, {5, 30, 40}}, {between, d, e, {5, 7, 30}}};
    run(workloads::matmul(std::span<const MatmulGroup<float, float>>(groups)), leg);
    run(workloads::matmul(a, b, alone, {5, 30, 40}), leg);
    run(workloads::matmul(alone, d, last, {5, 7, 30}), leg);
    CHECK(equal_bits(c, alone));
    CHECK(equal_bits(e, last));
  }
}

TEST_CASE("groups of matmul are refused whole, with the number of the wrong one",
          "[workloads][matmul][groups]") {
  using Group = MatmulGroup<float, float>;
  std::vector<float> a(6, 1.0f), c(4, 2.0f);
  const Group groups[] = {{a, a, c, {2, 2, 3}}, {a, a, c, {2, 2, 4}}};
  const auto sentence_of = [](std::span<const Group> some) {
    const Job job = workloads::matmul(some);
    REQUIRE(job.error());
    CHECK(*job.error() == Errc::invalid_argument);
    return refusal(job);
  };
  CHECK(sentence_of(groups) == "Group 1 of 2: Matrix a (6 elements) of workload 'matmul' is not 2 x 4.");
  CHECK(sentence_of({}) == "Groups (0) of workload 'matmul' are below the minimum (1).");
  CHECK(c == std::vector<float>(4, 2.0f));
}
