#include "scheduler/stored_times.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/byte_fields.hpp"

namespace wye::inline v0::scheduler {
namespace {

constexpr std::string_view format = "wye times 1";  // the number changes with the fields

template <class Fields, class Time>
void fields_of(Fields& fields, Time& time) {
  fields.duration(time.mean);
  fields.duration(time.spread);
  fields.duration(time.least);
  fields.number(time.count);
}

/// Writes or reads all times.
template <class Fields, class Times>
void payload(Fields& fields, Times& times) {
  constexpr std::size_t timing = 28, row = 2 + 2 * timing, kernels = 32, variant = 10 + timing;  // bytes
  fields.each(times.kernels, kernels, [&](auto& one) {
    fields.number(one.number);
    fields.duration(one.run);
    fields.duration(one.run_before);
    fields.each(one.rows, row, [&](auto& of_size) {
      fields.number(of_size.size_class);
      fields_of(fields, of_size.held);
      fields_of(fields, of_size.share);
    });
  });
  fields.each(times.variants, variant, [&](auto& one) {
    fields.number(one.number);
    fields.number(one.size_class);
    fields_of(fields, one.time);
  });
}

bool is_valid(const Timing& time) noexcept {
  const auto is_time = [](Duration value) { return value > Duration::zero() && value <= longest_time; };
  return is_time(time.mean) && is_time(time.least) && time.spread >= Duration::zero() &&
         time.spread <= longest_time && time.count > 0;
}

bool is_valid(const StoredTimes& times) noexcept {
  constexpr Duration longest_run = Duration::max() / 2;  // it grows
  std::size_t count = times.variants.size();
  for (const StoredTimes::Kernels& kernels : times.kernels) {
    if (kernels.run < Duration::zero() || kernels.run > longest_run) return false;
    if (kernels.run_before < Duration::zero() || kernels.run_before > kernels.run) return false;
    for (const StoredTimes::Row& row : kernels.rows)
      if (row.size_class > largest_size_class || !is_valid(row.held) || !is_valid(row.share)) return false;
    count += kernels.rows.size();
  }
  return count <= StoredTimes::most &&
         std::ranges::all_of(times.variants, [](const StoredTimes::Variant& variant) {
           return variant.size_class <= largest_size_class && is_valid(variant.time);
         });
}

}  // namespace

std::vector<std::byte> encode(const StoredTimes& times) {
  base::ByteWriter out;
  out.text(format);
  payload(out, times);
  return out.take();
}

std::optional<StoredTimes> decode_times(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  if (!std::ranges::equal(in.take(in.number()), std::as_bytes(std::span(format)))) return std::nullopt;
  StoredTimes times;
  payload(in, times);
  if (!in.at_end() || !is_valid(times)) return std::nullopt;
  return times;
}

StoredTimes merge(StoredTimes later, const StoredTimes& earlier) {
  std::unordered_map<std::uint64_t, std::size_t> places;
  for (std::size_t k = 0; k < later.kernels.size(); ++k) places.emplace(later.kernels[k].number, k);
  for (const StoredTimes::Kernels& one : earlier.kernels) {
    const auto [known, is_new] = places.emplace(one.number, later.kernels.size());
    if (is_new) {
      later.kernels.push_back(one);
      continue;
    }
    StoredTimes::Kernels& kernels = later.kernels[known->second];
    kernels.run = std::max(kernels.run, one.run);
    for (const StoredTimes::Row& row : one.rows)
      if (std::ranges::none_of(kernels.rows, [&](const auto& of) { return of.size_class == row.size_class; }))
        kernels.rows.push_back(row);
  }
  const auto key = [](const StoredTimes::Variant& variant) {
    return std::pair(variant.number, variant.size_class);
  };
  std::set<std::pair<std::uint64_t, std::uint16_t>> variants;
  for (const StoredTimes::Variant& variant : later.variants) variants.insert(key(variant));
  for (const StoredTimes::Variant& variant : earlier.variants)
    if (variants.insert(key(variant)).second) later.variants.push_back(variant);

  std::size_t left = StoredTimes::most;
  const auto cut = [&](auto& values) {
    if (values.size() > left) values.erase(values.begin() + static_cast<std::ptrdiff_t>(left), values.end());
    left -= values.size();
  };
  for (StoredTimes::Kernels& kernels : later.kernels) cut(kernels.rows);
  std::erase_if(later.kernels, [](const StoredTimes::Kernels& kernels) { return kernels.rows.empty(); });
  cut(later.variants);
  return later;
}

}  // namespace wye::scheduler
