// The variants of GLSL texts that use subgroups, which GPUs choose, on every Vulkan device: with
// subgroups of the device's size, with parts of them, and with larger ones that shared memory
// replaces.
#include <wye/runtime/runtime.hpp>
#include <wye/workloads/norm.hpp>
#include <wye/workloads/reduce.hpp>
#include <wye/workloads/scan.hpp>
#include <wye/workloads/softmax.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dot_kernels.hpp"
#include "norm_kernels.hpp"
#include "reduce_kernels.hpp"
#include "rows.hpp"
#include "scan_kernels.hpp"
#include "softmax_kernels.hpp"
#include "subgroups.hpp"
#include "support/skip.hpp"
#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
using workloads::KernelText;
using workloads::RowSplit;
namespace kernels = workloads::kernels;

namespace {

AdapterInfo vulkan_adapter() {
  for (const Device& device : the_runtime().devices())
    if (device.info().backend == "vulkan") return device.info();
  return {};
}

/// Returns whether there is a Vulkan device with subgroup operations.
bool has_subgroups() {
  if (!has_leg("vulkan")) return false;
  const bool has = vulkan_adapter().features.has(Feature::subgroups);
  if (!has) skip("the Vulkan device has no subgroup operations");
  return has;
}

/// The invocations of a subgroup; 0: as many as the device has. 1 is also the path of subgroups
/// that the driver does not fill.
using SubgroupSize = std::uint32_t;

/// Returns the text with exchanges by shared memory, for subgroups that are larger than the
/// device's.
std::string without_shuffles(std::string_view glsl) {
  std::string text(glsl);
  for (const std::string type : {"uint", "float", "uvec2", "vec2", "vec3"}) {
    const std::string head = type + " exchanged(" + type + " value, uint reach) {";
    const std::string exchange = head + " return subgroupShuffleXor(value, reach); }";
    const std::string memory = "of_" + type + "[invocation_index()";
    const std::size_t at = text.find(exchange);
    REQUIRE(at != std::string::npos);
    text.replace(at, exchange.size(),
                 "shared " + type + " of_" + type + "[256];\n" + head + " barrier(); " + memory +
                     "] = value; barrier(); return " + memory + " ^ reach]; }");
  }
  return text;
}

/// The two texts of a kernel on Vulkan: without subgroups, and with subgroups of each size.
template <class... P>
class SubgroupVariants {
 public:
  SubgroupVariants(const KernelText& text, std::vector<std::string> parameters)
      : text_(text), parameters_(std::move(parameters)), plain_(make_plain(text, parameters_)) {}

  const Kernel<P...>& plain() const { return plain_; }
  const Kernel<P...>& with(SubgroupSize size) {
    for (const auto& [made, kernel] : made_)
      if (made == size) return kernel;
    const bool fits = size <= vulkan_adapter().limits.subgroup_size;
    const std::string text = fits ? std::string(text_.glsl) : without_shuffles(text_.glsl);
    std::vector<Macro> macros;
    if (size != 0) macros.push_back({"SUBGROUP_SIZE", std::to_string(size) + "u"});
    KernelText changed = text_;
    changed.glsl = text;
    return made_
        .emplace_back(size, workloads::make_subgroups_kernel<P...>(changed, parameters_, {}, macros).value())
        .second;
  }

 private:
  static Kernel<P...> make_plain(const KernelText& text, const std::vector<std::string>& parameters) {
    return workloads::make_kernel<P...>(text, parameters, {}, {}).value();
  }

  const KernelText& text_;
  std::vector<std::string> parameters_;
  Kernel<P...> plain_;
  std::deque<std::pair<SubgroupSize, Kernel<P...>>> made_;
};

/// Returns "" if the bits are equal, or both are NaN. Otherwise returns the first place that
/// differs.
template <class T>
std::string differing_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return "sizes";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) == 0) continue;
    if constexpr (std::is_integral_v<T>) {
      return std::to_string(a[i]) + " and " + std::to_string(b[i]) + " at " + std::to_string(i);
    } else {
      const auto x = static_cast<float>(a[i]), y = static_cast<float>(b[i]);
      if (std::isnan(x) && std::isnan(y)) continue;
      return std::to_string(x) + " and " + std::to_string(y) + " at " + std::to_string(i);
    }
  }
  return "";
}

/// The texts for elements of T.
template <class T>
const KernelText& row_text_of(const KernelText& floats, const KernelText& halves, const KernelText& bfloats,
                              const KernelText& words, const KernelText& doubles) {
  if constexpr (std::is_same_v<T, std::uint64_t>) return doubles;
  if constexpr (std::is_integral_v<T> && sizeof(T) == 4) return words;
  return workloads::text_for<T>(floats, halves, bfloats);
}

RowSplit split_of(RowShape shape) { return workloads::split_of(shape.rows, shape.columns); }

template <class T>
std::vector<T> subgroup_elements(std::size_t count, std::uint32_t seed, bool special) {
  return special ? equal_elements<T>(count, seed) : elements<T>(count, seed);
}

/// Each returns the first difference between the two texts, for one shape.
template <class T>
std::string sum_differs(RowShape shape, SubgroupSize size, std::uint32_t seed, bool special) {
  static SubgroupVariants<Read<T>, Write<Sum<T>>, RowSplit> variants(
      row_text_of<T>(kernels::reduce_sum, kernels::reduce_sum_half, kernels::reduce_sum_bfloat16,
                     kernels::reduce_sum_word, kernels::reduce_sum_uint64),
      {"x", "sums", "split"});
  const RowSplit split = split_of(shape);
  const auto x = subgroup_elements<T>(shape.rows * shape.columns, seed, special);
  std::vector<Sum<T>> plain = poison<Sum<T>>(split.all_pieces()), found = plain;
  run(variants.plain()(x, plain, split).over(split.items()), "vulkan");
  run(variants.with(size)(x, found, split).over(split.items()), "vulkan");
  return differing_bits(plain, found);
}

template <class T>
std::string dot_differs(RowShape shape, SubgroupSize size, std::uint32_t seed, bool special) {
  static SubgroupVariants<Read<T>, Read<T>, Write<Sum<T>>, RowSplit> variants(
      row_text_of<T>(kernels::dot, kernels::dot_half, kernels::dot_bfloat16, kernels::dot_word,
                     kernels::dot_uint64),
      {"x", "y", "sums", "split"});
  const RowSplit split = split_of(shape);
  const std::size_t count = shape.rows * shape.columns;
  const auto x = subgroup_elements<T>(count, seed, special), y = elements<T>(count, seed + 1);
  std::vector<Sum<T>> plain = poison<Sum<T>>(split.all_pieces()), found = plain;
  run(variants.plain()(x, y, plain, split).over(split.items()), "vulkan");
  run(variants.with(size)(x, y, found, split).over(split.items()), "vulkan");
  return differing_bits(plain, found);
}

template <class T>
std::string norm_differs(RowShape shape, SubgroupSize size, std::uint32_t seed, bool special) {
  static SubgroupVariants<Read<T>, Write<float>, RowSplit, std::uint32_t> variants(
      workloads::text_for<T>(kernels::norm, kernels::norm_half, kernels::norm_bfloat16),
      {"x", "results", "split", "norm"});
  const RowSplit split = split_of(shape);
  const auto x = subgroup_elements<T>(shape.rows * shape.columns, seed, special);
  std::vector<float> plain = poison<float>(split.all_pieces()), found = plain;
  run(variants.plain()(x, plain, split, seed % 3).over(split.items()), "vulkan");
  run(variants.with(size)(x, found, split, seed % 3).over(split.items()), "vulkan");
  return differing_bits(plain, found);
}

template <class T>
std::string extreme_differs(RowShape shape, SubgroupSize size, std::uint32_t seed, bool special) {
  static SubgroupVariants<Read<T>, Read<std::uint32_t>, Write<T>, Write<std::uint32_t>, RowSplit,
                          std::uint32_t, std::uint32_t>
      variants(row_text_of<T>(kernels::reduce_extreme, kernels::reduce_extreme_half,
                              kernels::reduce_extreme_bfloat16, kernels::reduce_extreme_word,
                              kernels::reduce_extreme_uint64),
               {"x", "candidates", "values", "places", "split", "columns", "flip"});
  const RowSplit split = split_of(shape), of_pieces = workloads::split_of(split.rows, split.pieces);
  const auto x = subgroup_elements<T>(shape.rows * shape.columns, seed, special);
  const std::uint32_t flip = seed % 2 == 0 ? 0 : ~0u;
  const auto found_by = [&](const auto& kernel, std::vector<T>& values) {
    const std::span<const std::uint32_t> all;
    std::vector<std::uint32_t> places = poison<std::uint32_t>(split.all_pieces());
    values = poison<T>(split.rows);
    if (split.pieces == 1) {
      run(kernel(x, all, values, places, split, split.columns, flip).over(split.items()), "vulkan");
      return places;
    }
    std::vector<std::uint32_t> best = poison<std::uint32_t>(split.rows);
    run(kernel(x, all, std::span<T>(), places, split, split.columns, flip).over(split.items()), "vulkan");
    run(kernel(x, places, values, best, of_pieces, split.columns, flip).over(of_pieces.items()), "vulkan");
    places.insert(places.end(), best.begin(), best.end());
    return places;
  };
  std::vector<T> plain_values, values;
  const auto plain = found_by(variants.plain(), plain_values), found = found_by(variants.with(size), values);
  return differing_bits(plain, found) + differing_bits(plain_values, values);
}

std::string softmax_differs(RowShape shape, SubgroupSize size, std::uint32_t seed, bool special) {
  static SubgroupVariants<ReadWrite<float>, RowSplit, float> whole(kernels::softmax,
                                                                   {"matrix", "split", "scale"});
  static SubgroupVariants<Read<float>, Write<float>, RowSplit, float> of_sums(
      kernels::softmax_sums, {"matrix", "sums", "split", "scale"});
  static SubgroupVariants<ReadWrite<float>, Read<float>, RowSplit, float> applied(
      kernels::softmax_apply, {"matrix", "sums", "split", "scale"});
  const RowSplit split = split_of(shape);
  std::vector<float> x = numbers(shape.rows * shape.columns, seed, -20.0f, 20.0f);
  if (special) {
    const auto list = equal_elements<float>(x.size(), seed);
    for (std::size_t i = 0; i < x.size(); i += 1 + i % 5) x[i] = list[i];
  }
  const float scale = seed % 2 == 0 ? 1.0f : -0.375f;
  std::vector<float> plain = x, found = x, plain_sums, sums;
  if (split.pieces == 1) {
    run(whole.plain()(plain, split, scale).over(split.items()), "vulkan");
    run(whole.with(size)(found, split, scale).over(split.items()), "vulkan");
  } else {
    plain_sums = poison<float>(2 * split.all_pieces());
    sums = plain_sums;
    run(of_sums.plain()(x, plain_sums, split, scale).over(split.items()), "vulkan");
    run(of_sums.with(size)(x, sums, split, scale).over(split.items()), "vulkan");
    run(applied.plain()(plain, plain_sums, split, scale).over(split.items()), "vulkan");
    run(applied.with(size)(found, sums, split, scale).over(split.items()), "vulkan");
  }
  return differing_bits(plain, found) + differing_bits(plain_sums, sums);
}

/// Returns the sums of one text, whose rows of several pieces have offsets of the reference. No
/// size: without subgroups.
template <class T>
std::vector<Sum<T>> scanned(const std::vector<T>& x, RowShape shape, std::optional<SubgroupSize> size,
                            bool exclusive) {
  static SubgroupVariants<Read<T>, Read<Sum<T>>, Write<Sum<T>>, RowSplit, std::uint32_t> variants(
      row_text_of<T>(kernels::scan, kernels::scan_half, kernels::scan_bfloat16, kernels::scan_word,
                     kernels::scan_uint64),
      {"x", "offsets", "sums", "split", "exclusive"});
  const RowSplit split = split_of(shape);
  std::vector<Sum<T>> sums = poison<Sum<T>>(x.size()), offsets;
  if (split.pieces > 1) {
    const auto exact = workloads::reference::scan(workloads::Scan::exclusive, x, shape.rows);
    for (std::size_t row = 0; row < shape.rows; ++row)
      for (std::size_t column = 0; column < shape.columns; column += workloads::longest_piece)
        offsets.push_back(static_cast<Sum<T>>(exact[row * shape.columns + column]));
  }
  const auto& kernel = size ? variants.with(*size) : variants.plain();
  run(kernel(x, offsets, sums, split, exclusive ? 1u : 0u).over(split.items()), "vulkan");
  return sums;
}

template <class T>
std::string scan_differs(RowShape shape, SubgroupSize size, std::uint32_t seed, bool special) {
  const auto x = subgroup_elements<T>(shape.rows * shape.columns, seed, special);
  const bool exclusive = seed % 2 == 0;
  return differing_bits(scanned(x, shape, std::nullopt, exclusive), scanned(x, shape, size, exclusive));
}

/// Checks every kernel of elements of T.
template <class T>
void check_row_kernels(RowShape shape, SubgroupSize size, std::uint32_t seed, bool special = false) {
  INFO(name(element_type<T>()) << ", " << shape.rows << " x " << shape.columns << ", subgroups of " << size
                               << ", seed " << seed << (special ? ", special numbers" : ""));
  CHECK(sum_differs<T>(shape, size, seed, special) == "");
  CHECK(dot_differs<T>(shape, size, seed, special) == "");
  CHECK(extreme_differs<T>(shape, size, seed, special) == "");
  CHECK(scan_differs<T>(shape, size, seed, special) == "");
  if constexpr (!std::is_integral_v<T>) CHECK(norm_differs<T>(shape, size, seed, special) == "");
  if constexpr (std::is_same_v<T, float>) CHECK(softmax_differs(shape, size, seed, special) == "");
}

}  // namespace

TEST_CASE("variants with subgroups have the bits of those without", "[workloads][subgroups][native]") {
  if (!has_subgroups()) return;
  for_element_types([](auto type) {
    using T = decltype(type);
    std::uint32_t seed = 0;
    for (const RowShape shape : few_row_shapes) {
      check_row_kernels<T>(shape, 0, ++seed);
      if (shape.columns < 2000) check_row_kernels<T>(shape, 0, ++seed, true);
    }
  });
  for (const RowShape shape : row_shapes) check_row_kernels<float>(shape, 0, 7);
}

TEST_CASE("variants with subgroups are right for subgroups of every size", "[workloads][subgroups]") {
  if (!has_subgroups()) return;
  std::uint32_t seed = 0;
  const std::uint32_t size_of_device = vulkan_adapter().limits.subgroup_size;
  for (const SubgroupSize size : {1u, 2u, 4u, 32u, 128u})
    for (const RowShape shape : {RowShape{300, 3}, {33, 13}, {65, 63}, {9, 300}, {3, 1001}, {2, 3001}}) {
      check_row_kernels<float>(shape, size, ++seed, shape.columns == 300);
      if (size <= size_of_device) check_row_kernels<std::uint64_t>(shape, size, ++seed);
    }
}

TEST_CASE("variants with subgroups are right for random shapes", "[workloads][subgroups]") {
  if (!has_subgroups()) return;
  std::mt19937 random(19);
  for (std::uint32_t i = 0; i < 60; ++i) {
    const RowShape shape{1 + random() % 40, 1 + random() % (i % 8 == 0 ? 3000 : 100)};
    const auto seed = static_cast<std::uint32_t>(random() % 1000);
    for_float_type(i, [&](auto type) { check_row_kernels<decltype(type)>(shape, 0, seed, i % 4 == 0); });
    if (i % 5 == 0) check_row_kernels<std::uint32_t>(shape, 0, seed);
  }
}

TEST_CASE("prefix sums by subgroups propagate NaN and infinities to later sums only",
          "[workloads][subgroups][native]") {
  if (!has_subgroups()) return;
  for (const std::size_t place : {0u, 5u, 700u, 1023u, 1024u, 2999u}) {
    INFO(place);
    std::vector<float> x = numbers(6000, 3);
    x[place] = undefined;
    x[3000 + place] = -infinity;
    const std::vector<float> sums = scanned(x, {2, 3000}, 0, false);
    bool right = true;
    for (std::size_t i = 0; i < 3000; ++i) {
      right = right && std::isnan(sums[i]) == (i >= place);
      right = right && (sums[3000 + i] == -infinity) == (i >= place) && !std::isnan(sums[3000 + i]);
    }
    CHECK(right);
  }
}

TEST_CASE("variants with subgroups are right for arrays that begin at odd elements",
          "[workloads][subgroups]") {
  if (!has_subgroups()) return;
  constexpr std::size_t rows = 3, columns = 1204, count = rows * columns;
  for_element_types([&](auto type) {
    using T = decltype(type);
    const RowSplit split = split_of({rows, columns});
    static const auto kernel =
        workloads::make_subgroups_kernel<Read<T>, Read<Sum<T>>, Write<Sum<T>>, RowSplit, std::uint32_t>(
            row_text_of<T>(kernels::scan, kernels::scan_half, kernels::scan_bfloat16, kernels::scan_word,
                           kernels::scan_uint64),
            {"x", "offsets", "sums", "split", "exclusive"}, {})
            .value();
    for (const std::size_t begin : {0u, 1u, 2u, 3u, 4u})
      for (const std::size_t to_begin : {0u, 1u}) {
        INFO(name(element_type<T>()) << ", from element " << begin << " to " << to_begin);
        const auto x = elements<T>(count + begin, 6);
        const Array<T> from = the_runtime().array(x);
        const Array<Sum<T>> to = the_runtime().template array<Sum<T>>(count + to_begin);
        const std::span<const Sum<T>> none;
        run(kernel(Read<T>(from).slice(begin, count), none, Write<Sum<T>>(to).slice(to_begin, count), split,
                   0u)
                .over(split.items()),
            "vulkan");
        const auto results = to.read();
        REQUIRE(results);
        const auto span = results->span().subspan(to_begin);
        const std::vector<T> of_rows(x.begin() + static_cast<std::ptrdiff_t>(begin), x.end());
        const std::vector<Sum<T>> found(span.begin(), span.end());
        CHECK(differing_bits(found, scanned(of_rows, {rows, columns}, 0, false)) == "");
      }
  });
}

TEST_CASE("only devices that are no CPUs choose between variants with and without subgroups",
          "[workloads][subgroups]") {
  if (!has_subgroups()) return;
  const AdapterType type = vulkan_adapter().type;
  const std::vector<float> x = numbers(37 * 43, 1);
  std::vector<float> sums(37);
  std::string reason;
  for (int i = 0; i < 7; ++i)
    reason = run(workloads::reduce(workloads::Reduction::sum, x, sums), "vulkan").reason();
  INFO(reason);
  CHECK((reason.find("'reduce_sum_subgroups'") != std::string::npos) == (type != AdapterType::cpu));

  // The same for this type of device.
  const std::vector<std::string> parameters{"x", "sums", "split"};
  const auto kernel =
      workloads::with_variant(workloads::make_kernel<Read<float>, Write<float>, RowSplit>(kernels::reduce_sum,
                                                                                          parameters, {}, {}),
                              workloads::make_subgroups_kernel<Read<float>, Write<float>, RowSplit>(
                                  kernels::reduce_sum, parameters, {type}))
          .value();
  const RowSplit split = split_of({37, 43});
  const auto job = [&] { return Job(kernel(x, sums, split).over(split.items())); };
  for (int i = 0; i < 7; ++i) reason = run(job(), "vulkan").reason();
  INFO(reason);
  CHECK(reason.find("'reduce_sum_subgroups' ") != std::string::npos);
  Runtime same_kernel =
      Runtime::open({.pool = {.backends = {"vulkan"}}, .scheduler = {.measure_variants = false}}).value();
  const auto done = same_kernel.run(job(), {.on = "vulkan"});
  REQUIRE(done);
  CHECK(done->code().front().kernel == "reduce_sum_subgroups");
}
