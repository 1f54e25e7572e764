#include <wye/workloads/embed.hpp>

#include <cstddef>

namespace wye::inline v0::workloads {
namespace {

template <class T>
std::vector<T> embedded(std::span<const T> table, std::span<const std::uint32_t> tokens,
                        std::uint64_t columns) {
  std::vector<T> result;
  result.reserve(tokens.size() * columns);
  for (const std::uint32_t token : tokens)
    for (std::uint64_t column = 0; column < columns; ++column)
      result.push_back(token < table.size() / columns ? table[token * columns + column] : T(0.0f));
  return result;
}

}  // namespace

namespace reference {

std::vector<float> embed(std::span<const float> table, std::span<const std::uint32_t> tokens,
                         std::uint64_t columns) {
  return embedded(table, tokens, columns);
}
std::vector<half> embed(std::span<const half> table, std::span<const std::uint32_t> tokens,
                        std::uint64_t columns) {
  return embedded(table, tokens, columns);
}
std::vector<bfloat16> embed(std::span<const bfloat16> table, std::span<const std::uint32_t> tokens,
                            std::uint64_t columns) {
  return embedded(table, tokens, columns);
}

}  // namespace reference

}  // namespace wye::workloads
