#include <wye/workloads/embed.hpp>

#include <optional>
#include <string>

#include "cpu.hpp"
#include "embed_kernels.hpp"
#include "rows.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

template <class T>
const auto& embed_kernel() {
  static const auto kernel = make_kernel<Read<T>, Read<std::uint32_t>, Write<T>, RowSplit, std::uint32_t>(
      sizeof(T) == 4 ? kernels::embed_words : kernels::embed_halves,
      {"table", "tokens", "result", "split", "vocabulary"}, {}, {host(cpu::embed<T>, {.tile = piece_tile})});
  return kernel;
}

/// Returns the reason if the sizes of the table and the result do not match.
std::optional<std::string> no_table(std::uint64_t table, std::uint64_t tokens, std::uint64_t result) {
  const auto sentence = [](const std::string& name, std::uint64_t size, const std::string& rest) {
    return name + " (" + std::to_string(size) + " elements) of workload 'embed' " + rest;
  };
  const std::string limit = " exceeds the limit (" + std::to_string(largest_dimension) + ").";
  if (tokens == 0 ? result != 0 : result % tokens != 0)
    return sentence("Result", result,
                    "has no whole number of elements for " + std::to_string(tokens) + " tokens.");
  if (tokens > largest_dimension)
    return sentence("Result", result, "has a number of rows (" + std::to_string(tokens) + ") that" + limit);
  const std::uint64_t columns = tokens == 0 ? 0 : result / tokens;
  if (columns > largest_dimension)
    return sentence("Result", result, "has rows whose length (" + std::to_string(columns) + ")" + limit);
  if (columns == 0) return std::nullopt;
  if (table % columns != 0)
    return sentence("Table", table,
                    "has no whole number of rows of " + std::to_string(columns) + " columns.");
  if (table / columns > largest_dimension)
    return sentence("Table", table,
                    "has a number of rows (" + std::to_string(table / columns) + ") that" + limit);
  return std::nullopt;
}

template <class T>
Job embed_job(const Read<T>& table, const Read<std::uint32_t>& tokens, const Write<T>& result) {
  if (auto why = no_table(table.size(), tokens.size(), result.size()))
    return refused("embed", workload_types::vector, *std::move(why));
  const RowSplit split = split_columns(result.size(), tokens.size());
  const auto vocabulary = static_cast<std::uint32_t>(split.columns == 0 ? 0 : table.size() / split.columns);
  Steps steps;
  steps.add(embed_kernel<T>(), split.items(), table, tokens, result, split, vocabulary);
  return std::move(steps).job("embed", workload_types::vector);
}

}  // namespace

Job embed(Read<float> table, Read<std::uint32_t> tokens, Write<float> result) {
  return embed_job(table, tokens, result);
}
Job embed(Read<half> table, Read<std::uint32_t> tokens, Write<half> result) {
  return embed_job(table, tokens, result);
}
Job embed(Read<bfloat16> table, Read<std::uint32_t> tokens, Write<bfloat16> result) {
  return embed_job(table, tokens, result);
}

}  // namespace wye::workloads
