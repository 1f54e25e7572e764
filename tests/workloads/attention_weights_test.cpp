#include <wye/workloads/attention_weights.hpp>

#include "workloads/legs.hpp"

using namespace wye;
using namespace wye::test;
namespace reference = wye::workloads::reference;
using workloads::AttentionWeightsOptions;

namespace {

std::string difference_of(std::vector<float> scores, AttentionWeightsOptions options,
                          const std::string& leg) {
  const std::vector<double> exact = reference::attention_weights(scores, options);
  run(workloads::attention_weights(scores, options), leg);
  return difference(scores, exact, relative(exact, 5e-5 + 10 * 0x1p-23));  // no divided score is above 10
}

}  // namespace

TEST_CASE("attention weights are the softmax of scaled scores", "[workloads][attention]") {
  for (const std::string& leg : legs()) {
    INFO(leg);
    for (std::size_t side : {0u, 1u, 2u, 17u, 300u}) {
      INFO(side << " x " << side);
      CHECK(difference_of(numbers(side * side, 1, -10, 10), {}, leg) == "");
      CHECK(difference_of(numbers(side * side, 2, -80, 80), {.head_size = 64}, leg) == "");
    }
    CHECK(difference_of(numbers(12 * 100, 3, -10, 10), {.columns = 100, .head_size = 3}, leg) == "");
  }
}

TEST_CASE("attention weights of huge scores are not lost in rounding", "[workloads][attention]") {
  // Equal scores share equally; 1e30 / sqrt(3) is no float, and its rounding is 1e22.
  for (const std::string& leg : legs())
    for (const float score : {1e4f, 1.1e8f, 1e30f, -1e30f, 3e38f})
      for (const std::size_t columns : {5u, 1000u, 70000u}) {
        INFO(leg << ", " << columns << " times " << score);
        std::vector<float> scores(columns, score);
        run(workloads::attention_weights(scores, {.columns = columns, .head_size = 3}), leg);
        const std::vector<double> exact(columns, 1.0 / static_cast<double>(columns));
        CHECK(difference(scores, exact, relative(exact, 1e-6)) == "");
      }
}

TEST_CASE("attention weights refuse scores that are no square", "[workloads][attention]") {
  std::vector<float> scores(15);
  CHECK(refusal(workloads::attention_weights(scores)) ==
        "Scores (15 elements) of workload 'attention_weights' are not square, and no number of columns is "
        "given.");
  CHECK(refusal(workloads::attention_weights(scores, {.columns = 4})) ==
        "Matrix (15 elements) of workload 'attention_weights' has no whole number of rows of 4 columns.");
  CHECK(refusal(workloads::attention_weights(scores, {.columns = 5})) == "not refused");
}
