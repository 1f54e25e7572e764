#include <wye/workloads/cached_attention.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cached_attention_kernels.hpp"
#include "cached_rows.hpp"
#include "cpu.hpp"
#include "kernel_text.hpp"
#include "rows.hpp"
#include "sequences.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

/// The limits of rows, of the capacity and of heads bound the loops of shaders; that of heads times
/// keys bounds the state of a row.
constexpr std::uint64_t most_sequence_rows = std::uint64_t{1} << 22, most_sequence_heads = 1024,
                        most_scores_of_row = std::uint64_t{1} << 28;
constexpr float least_softcap = std::numeric_limits<float>::min();
/// Numbers of the state of one step, unless one row has more: 32 MiB, which caches of large GPUs
/// have.
constexpr std::uint64_t state_of_step = std::uint64_t{1} << 23;

template <class T>
const KernelText& cached_attention_text() {
  if constexpr (std::is_same_v<T, half>) return kernels::cached_attention_half;
  if constexpr (std::is_same_v<T, bfloat16>) return kernels::cached_attention_bfloat16;
  return kernels::cached_attention;
}

const auto& places_kernel() {
  static const auto kernel =
      make_kernel<Read<std::uint32_t>, Read<std::uint32_t>, Read<std::uint32_t>, Write<std::uint32_t>,
                  SequenceRows>(kernels::attention_places, {"offsets", "slots", "cached", "places", "shape"},
                                {}, {host(cpu::attention_places, {.tile = Extent3(256)})});
  return kernel;
}
template <class T>
const auto& append_kernel() {
  static const auto kernel =
      make_kernel<Read<T>, Read<T>, ReadWrite<T>, ReadWrite<T>, Read<std::uint32_t>, CacheRows>(
          sizeof(T) == 4 ? kernels::cache_append_words : kernels::cache_append_halves,
          {"k", "v", "key_cache", "value_cache", "places", "shape"}, {},
          {host(cpu::cache_append<T>, {.tile = Extent3(cached_stretch)})});
  return kernel;
}
/// `State` is Write for the step that attends, and ReadWrite for the step that adds up.
template <class T, class State>
const auto& cached_attention_kernel() {
  static const auto kernel =
      make_kernel<Read<T>, Read<T>, Read<T>, Read<std::uint32_t>, State, Write<T>, CachedStretches>(
          cached_attention_text<T>(), {"q", "keys", "values", "places", "state", "result", "shape"}, {},
          {host(cpu::cached_attention<T>, {.tile = Extent3(cached_stretch)})});
  return kernel;
}

std::string with_count(const char* subject, std::uint64_t count) {
  return std::string(subject) + " (" + std::to_string(count) + ")";
}

/// Returns the reason if heads, options or dimensions are invalid.
std::optional<std::string> no_sequence_shape(const std::string& of, const SequenceShape& shape,
                                             const SequenceOptions& options) {
  const auto beyond = [&](const char* subject, std::uint64_t value, std::uint64_t limit) {
    return with_count(subject, value) + of + "exceeds the limit (" + std::to_string(limit) + ").";
  };
  if (shape.heads == 0) return "Number of heads (0)" + of + "is below the minimum (1).";
  if (shape.heads > most_sequence_heads) return beyond("Number of heads", shape.heads, most_sequence_heads);
  if (shape.heads % shape.key_value_heads != 0)
    return with_count("Number of heads", shape.heads) + of +
           "is no multiple of the number of key/value heads (" + std::to_string(shape.key_value_heads) + ").";
  if (shape.head_size == 0) return "Head size (0)" + of + "is below the minimum (1).";
  if (shape.head_size > largest_head) return beyond("Head size", shape.head_size, largest_head);
  if (shape.value_size > largest_head) return beyond("Value size", shape.value_size, largest_head);
  if (options.scale && !std::isfinite(*options.scale))
    return "Scale (" + std::to_string(*options.scale) + ")" + of + "is not finite.";
  if (options.window != 0 && !options.causal)
    return with_count("Window", options.window) + of + "requires causal attention.";
  if (options.softcap != 0 && !(options.softcap >= least_softcap && std::isfinite(options.softcap)))
    return "Softcap (" + std::to_string(options.softcap) + ")" + of +
           "is neither 0 nor finite and at least 2^-126.";
  return std::nullopt;
}

/// Returns the reason if the sizes of memory do not match the shape.
template <class T>
std::optional<std::string> no_sequence_sizes(const std::string& of, const SequenceArguments<T>& a) {
  const auto elements = [&](const char* subject, std::uint64_t size) {
    return std::string(subject) + " (" + std::to_string(size) + " elements)" + of;
  };
  const auto heads_of = [](std::uint64_t heads, std::uint64_t size) {
    return std::to_string(heads) + " heads of " + std::to_string(size) + ".";
  };
  const auto not_rows = [&](const char* subject, std::uint64_t elements_of, std::uint64_t heads,
                            std::uint64_t size) -> std::optional<std::string> {
    if (elements_of == a.rows() * heads * size) return std::nullopt;
    return elements(subject, elements_of) + "are not " + std::to_string(a.rows()) + " rows of " +
           heads_of(heads, size);
  };
  if (a.q.size() % a.query_columns() != 0)
    return elements("Queries", a.q.size()) + "are no whole rows of " +
           heads_of(a.shape.heads, a.shape.head_size);
  if (a.rows() > most_sequence_rows)
    return with_count("Number of rows", a.rows()) + of + "exceeds the limit (" +
           std::to_string(most_sequence_rows) + ").";
  auto why = not_rows("Keys", a.k.size(), a.shape.key_value_heads, a.shape.head_size);
  if (!why) why = not_rows("Values", a.v.size(), a.shape.key_value_heads, a.shape.value_size);
  if (!why) why = not_rows("Results", a.out.size(), a.shape.heads, a.shape.value_size);
  if (why) return why;
  if (a.offsets.size() == 0 || a.offsets.size() > largest_dimension)
    return elements("Offsets", a.offsets.size()) + "are not between 1 and " +
           std::to_string(largest_dimension) + ".";
  if (!a.cache) return std::nullopt;

  const std::uint64_t capacity = a.cache->capacity;
  if (capacity == 0 || capacity > most_sequence_rows)
    return with_count("Capacity", capacity) + of + "is not between 1 and " +
           std::to_string(most_sequence_rows) + ".";
  if (a.cache->keys.size() % (capacity * a.key_columns()) != 0)
    return elements("Cache of keys", a.cache->keys.size()) + "has no whole number of slots of " +
           std::to_string(capacity) + " rows of " + heads_of(a.shape.key_value_heads, a.shape.head_size);
  if (a.slots() * capacity > largest_dimension)
    return with_count("Number of rows of the cache", a.slots() * capacity) + of + "exceeds the limit (" +
           std::to_string(largest_dimension) + ").";
  if (a.cache->values.size() != a.slots() * capacity * a.value_columns())
    return elements("Cache of values", a.cache->values.size()) + "has not " + std::to_string(a.slots()) +
           " slots of " + std::to_string(capacity) + " rows of " +
           heads_of(a.shape.key_value_heads, a.shape.value_size);
  for (const auto& [subject, size] :
       {std::pair{"Slots", a.cache->slots.size()}, {"Cached tokens", a.cache->cached.size()}})
    if (size != a.sequences())
      return elements(subject, size) + "are not those of " + std::to_string(a.sequences()) + " sequences.";
  return std::nullopt;
}

/// Finds the most keys that a row sees, or a limit if the arrays are not in host memory. Returns
/// the reason if these are invalid.
template <class T>
std::optional<std::string> no_sequences(const std::string& of, const SequenceArguments<T>& a,
                                        std::uint64_t& longest) {
  longest = a.cache ? a.cache->capacity : a.rows();
  const auto [offsets_exist, offsets] = words_on_host(a.offsets);
  if (!offsets_exist) return std::nullopt;
  if (auto why = no_offsets(a.workload, offsets, a.rows())) return why;
  const auto element = [](const char* subject, std::size_t i, std::uint64_t value) {
    return std::string(subject) + " " + std::to_string(i) + " (" + std::to_string(value) + ")";
  };

  HostWords cached, slots;
  if (a.cache) {
    cached = words_on_host(a.cache->cached);
    slots = words_on_host(a.cache->slots);
  }
  const std::uint64_t limit = longest;
  if (!a.cache || cached.exist) longest = 0;
  std::vector<std::uint32_t> used;
  for (std::size_t s = 0; s < a.sequences(); ++s) {
    const std::uint64_t tokens = offsets[s + 1] - offsets[s], before = cached.exist ? cached.words[s] : 0;
    if (tokens == 0) continue;
    if (a.cache && before + tokens > limit)
      return element("Sequence", s, before + tokens) + of + "has more tokens than the cache (" +
             std::to_string(limit) + ").";
    longest = std::max(longest, before + tokens);
    if (!slots.exist) continue;
    if (slots.words[s] >= a.slots())
      return element("Slot", s, slots.words[s]) + of + "is not below the number of slots (" +
             std::to_string(a.slots()) + ").";
    used.push_back(slots.words[s]);
  }
  std::sort(used.begin(), used.end());
  const auto twice = std::adjacent_find(used.begin(), used.end());
  if (twice != used.end()) return with_count("Slot", *twice) + of + "is that of two sequences.";
  return std::nullopt;
}

std::uint32_t as_word(std::uint64_t number) { return static_cast<std::uint32_t>(number); }

/// Returns the most keys that a row sees, of `longest` keys.
std::uint32_t window_of(const SequenceOptions& options, std::uint64_t longest) {
  return options.window == 0 || options.window >= longest ? no_window : as_word(options.window);
}
/// Returns the most keys of the stretches that a row has keys in: a window begins in a stretch.
std::uint64_t most_keys_of_row(const SequenceOptions& options, std::uint64_t longest) {
  const std::uint64_t window = window_of(options, longest);
  return std::min(longest, window + (cached_stretch - 1));
}

template <class T>
Job attention_of_sequences(SequenceArguments<T> a) {
  std::uint64_t longest = 0;
  if (auto why = refusal_of_sequences(a, longest))
    return refused(a.workload, workload_types::attention, *std::move(why));
  const Scratch<std::uint32_t> places(words_of_place * a.rows());
  Steps steps;
  add_sequence_places(steps, a, longest, places, false);
  add_sequence_attention(steps, a, longest, places);
  return std::move(steps).job(a.workload, workload_types::attention);
}

}  // namespace

template <class T>
std::optional<std::string> refusal_of_sequences(SequenceArguments<T>& a, std::uint64_t& longest) {
  SequenceShape& shape = a.shape;
  if (shape.key_value_heads == 0) shape.key_value_heads = shape.heads;
  if (shape.value_size == 0) shape.value_size = shape.head_size;
  const std::string of = std::string(" of workload '") + a.workload + "' ";
  auto why = no_sequence_shape(of, shape, a.options);
  if (!why) why = no_sequence_sizes(of, a);
  if (!why) why = no_sequences(of, a, longest);
  const std::uint64_t scores = most_keys_of_row(a.options, longest) * shape.heads;
  if (!why && scores > most_scores_of_row)
    why = with_count("Number of heads times the longest sequence", scores) + of + "exceeds the limit (" +
          std::to_string(most_scores_of_row) + ").";
  return why;
}

template <class T>
void add_sequence_places(Steps& steps, const SequenceArguments<T>& a, std::uint64_t longest,
                         const Scratch<std::uint32_t>& places, bool positions) {
  const SequenceRows sequences{.rows = as_word(a.rows()),
                               .slots = as_word(a.cache ? a.slots() : 0),
                               .capacity = as_word(a.cache ? a.cache->capacity : 0),
                               .longest = as_word(longest),
                               .causal = a.options.causal,
                               .cached = a.cache.has_value(),
                               .positions = positions,
                               .window = window_of(a.options, longest)};
  const std::span<const std::uint32_t> no_words;
  if (a.cache)
    steps.add(places_kernel(), flat(a.rows()), a.offsets, a.cache->slots, a.cache->cached, places, sequences);
  else
    steps.add(places_kernel(), flat(a.rows()), a.offsets, no_words, no_words, places, sequences);
}

template <class T>
void add_sequence_attention(Steps& steps, const SequenceArguments<T>& a, std::uint64_t longest,
                            const Scratch<std::uint32_t>& places) {
  const SequenceShape& shape = a.shape;
  const std::uint64_t rows = a.rows();
  if (a.cache)
    steps.add(append_kernel<T>(), flat(rows * cached_stretch), a.k, a.v, a.cache->keys, a.cache->values,
              places,
              CacheRows{.rows = as_word(rows),
                        .key_columns = as_word(a.key_columns()),
                        .value_columns = as_word(a.value_columns())});

  CachedStretches step{
      .rows = 0,
      .head_counts = as_word(shape.heads | shape.key_value_heads << 16),
      .sizes = as_word(shape.head_size | shape.value_size << 16),
      .stretches = as_word((most_keys_of_row(a.options, longest) + cached_stretch - 1) / cached_stretch),
      .adds_up = 0,
      .scale =
          a.options.scale.value_or(static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_size)))),
      .softcap = a.options.softcap,
      .window = window_of(a.options, longest)};
  const std::uint64_t state_of_row = shape.heads * step.stretches * stretch_state(shape.value_size);
  const std::uint64_t most_rows =
      rows == 0 ? 0 : std::clamp<std::uint64_t>(state_of_step / state_of_row, 1, rows);
  const Scratch<float> state(most_rows * state_of_row);
  const Read<T> keys = a.cache ? Read<T>(Memory(a.cache->keys)) : a.k,
                values = a.cache ? Read<T>(Memory(a.cache->values)) : a.v;
  const std::span<T> no_results;
  for (std::uint64_t first = 0; first < rows; first += most_rows) {
    const std::uint64_t count = std::min(most_rows, rows - first);
    const Read<std::uint32_t> of_rows =
        Read<std::uint32_t>(places).slice(words_of_place * first, words_of_place * count);
    step.rows = as_word(count);
    step.adds_up = 0;
    steps.add(cached_attention_kernel<T, Write<float>>(), flat(step.workgroups() * cached_stretch),
              a.q.slice(first * a.query_columns(), count * a.query_columns()), keys, values, of_rows, state,
              no_results, step);
    step.adds_up = 1;
    // It reads no queries, keys and values: they must not overlap the results.
    steps.add(cached_attention_kernel<T, ReadWrite<float>>(), flat(count * shape.heads * items_of_sum), a.q,
              keys, values, of_rows, state,
              a.out.slice(first * a.result_columns(), count * a.result_columns()), step);
  }
}

#define WYE_SEQUENCES(T)                                                                           \
  template std::optional<std::string> refusal_of_sequences(SequenceArguments<T>&, std::uint64_t&); \
  template void add_sequence_places(Steps&, const SequenceArguments<T>&, std::uint64_t,            \
                                    const Scratch<std::uint32_t>&, bool);                          \
  template void add_sequence_attention(Steps&, const SequenceArguments<T>&, std::uint64_t,         \
                                       const Scratch<std::uint32_t>&);
WYE_SEQUENCES(float)
WYE_SEQUENCES(half)
WYE_SEQUENCES(bfloat16)
#undef WYE_SEQUENCES

Job cached_attention(Read<float> q, Read<float> k, Read<float> v, Read<std::uint32_t> offsets,
                     KeyValueCache<float> cache, Write<float> out, SequenceShape shape,
                     SequenceOptions options) {
  return attention_of_sequences<float>({"cached_attention", q, k, v, offsets, cache, out, shape, options});
}
Job cached_attention(Read<half> q, Read<half> k, Read<half> v, Read<std::uint32_t> offsets,
                     KeyValueCache<half> cache, Write<half> out, SequenceShape shape,
                     SequenceOptions options) {
  return attention_of_sequences<half>({"cached_attention", q, k, v, offsets, cache, out, shape, options});
}
Job cached_attention(Read<bfloat16> q, Read<bfloat16> k, Read<bfloat16> v, Read<std::uint32_t> offsets,
                     KeyValueCache<bfloat16> cache, Write<bfloat16> out, SequenceShape shape,
                     SequenceOptions options) {
  return attention_of_sequences<bfloat16>({"cached_attention", q, k, v, offsets, cache, out, shape, options});
}

Job ragged_attention(Read<float> q, Read<float> k, Read<float> v, Read<std::uint32_t> offsets,
                     Write<float> out, SequenceShape shape, SequenceOptions options) {
  return attention_of_sequences<float>(
      {"ragged_attention", q, k, v, offsets, std::nullopt, out, shape, options});
}
Job ragged_attention(Read<half> q, Read<half> k, Read<half> v, Read<std::uint32_t> offsets, Write<half> out,
                     SequenceShape shape, SequenceOptions options) {
  return attention_of_sequences<half>(
      {"ragged_attention", q, k, v, offsets, std::nullopt, out, shape, options});
}
Job ragged_attention(Read<bfloat16> q, Read<bfloat16> k, Read<bfloat16> v, Read<std::uint32_t> offsets,
                     Write<bfloat16> out, SequenceShape shape, SequenceOptions options) {
  return attention_of_sequences<bfloat16>(
      {"ragged_attention", q, k, v, offsets, std::nullopt, out, shape, options});
}

}  // namespace wye::workloads
