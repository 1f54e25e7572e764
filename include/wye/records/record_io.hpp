#pragma once
/// The records of a set, and its results: in memory, in files, or made by a function.
#include <wye/base/result.hpp>
#include <wye/records/record_function.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace wye::inline v0 {

namespace records {
class Source;
class Sink;
}  // namespace records

namespace detail {
template <class R>
concept RecordRangeOf = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::is_trivially_copyable_v<std::ranges::range_value_t<R>>;
}  // namespace detail

/// A file of values of type `T`: their bytes, one value after the other. It may exceed the memory.
///
///     wye::distribute(*runtime, score, wye::RecordFile<Page>{"pages"}, wye::RecordFile<Score>{"scores"});
template <class T>
struct RecordFile {
  static_assert(std::is_trivially_copyable_v<T>);
  std::string path;
};

/// A line of a text, without its end: of at most `most` bytes.
template <std::size_t most>
struct RecordLine {
  std::uint32_t size = 0;
  char text[most] = {};
  std::string_view view() const noexcept { return {text, size}; }
};

/// A file whose lines are records of type `RecordLine<most>`. Lines end with a newline, except the
/// last one. It may exceed the memory. A longer line is an error.
template <std::size_t most>
struct RecordLines {
  std::string path;
};

/// The records of a set.
/// Threads: thread-compatible.
class RecordInput {
 public:
  /// Memory of the application, until `distribute` returns.
  template <detail::RecordRangeOf R>
  RecordInput(const R& records)  // NOLINT: a span or vector is an input
      : type_(detail::record_type<std::ranges::range_value_t<R>>()),
        memory_(std::as_bytes(std::span(std::ranges::data(records), std::ranges::size(records)))) {
    count_ = memory_.size() / type_.size;
  }
  /// A file, which must not change until `distribute` returns. Batches are read on the thread that
  /// called it.
  template <class T>
  RecordInput(const RecordFile<T>& file)  // NOLINT: a file is an input
      : type_(detail::record_type<T>()), path_(file.path) {}
  /// The lines of a file. `distribute` reads it once before it begins.
  template <std::size_t most>
  RecordInput(const RecordLines<most>& lines)  // NOLINT: lines are an input
      : type_(detail::record_type<RecordLine<most>>()), path_(lines.path), longest_line_(most) {}
  /// Records of type `T` that `make(first, records)` writes: `records` gets those from number `first`
  /// on. It is called on the thread that called `distribute`, for each batch, and again if records
  /// run again: then it must make the same. It returns nothing, or a Result<void>, and may throw.
  template <class T, class Make>
  static RecordInput made_by(std::uint64_t count, Make make) {
    static_assert(std::is_trivially_copyable_v<T>);
    RecordInput input(detail::record_type<T>(), count);
    input.make_ = [make = std::move(make)](std::uint64_t first, std::byte* to,
                                           std::size_t records) -> Result<void> {
      const std::span<T> made(reinterpret_cast<T*>(to), records);
      if constexpr (std::is_void_v<std::invoke_result_t<const Make&, std::uint64_t, std::span<T>>>)
        return make(first, made), Result<void>();
      else
        return make(first, made);
    };
    return input;
  }

  const RecordType& type() const noexcept { return type_; }

 private:
  friend class records::Source;
  RecordInput(RecordType type, std::uint64_t count) : type_(type), count_(count) {}
  RecordType type_;
  std::uint64_t count_ = 0;  // of a file: unknown
  std::span<const std::byte> memory_;
  std::optional<std::string> path_;  // set: a file
  std::size_t longest_line_ = 0;     // of a file of lines
  std::function<Result<void>(std::uint64_t first, std::byte* to, std::size_t records)> make_;
};

/// The results of a set.
/// Threads: thread-compatible.
class RecordOutput {
 public:
  /// Memory of the application, until `distribute` returns.
  template <detail::RecordRangeOf R>
  RecordOutput(R&& results)  // NOLINT: a span or vector is an output
      : type_(detail::record_type<std::ranges::range_value_t<R>>()),
        memory_(std::as_writable_bytes(std::span(std::ranges::data(results), std::ranges::size(results)))) {}
  /// A file, which is created, or gets the length of the results. If results cannot be written, the
  /// set ends.
  template <class T>
  RecordOutput(const RecordFile<T>& file)  // NOLINT: a file is an output
      : type_(detail::record_type<T>()), path_(file.path) {}
  /// A function, which gets the results in the order of the records: `take(first, results)` gets those
  /// of the records from number `first` on. It is called on the thread that called `distribute`, and
  /// not for records that fail, unless `failed` is given. It returns nothing, or a Result<void>, and
  /// may throw; after an error the set ends. Workers do not begin records that are more than two
  /// batches for each of them ahead of the next result.
  template <class T, class Take>
  static RecordOutput taken_by(Take take) {
    static_assert(std::is_trivially_copyable_v<T>);
    RecordOutput output(detail::record_type<T>());
    output.take_ = [take = std::move(take)](std::uint64_t first, const std::byte* from,
                                            std::size_t results) -> Result<void> {
      const std::span<const T> taken(reinterpret_cast<const T*>(from), results);
      if constexpr (std::is_void_v<std::invoke_result_t<const Take&, std::uint64_t, std::span<const T>>>)
        return take(first, taken), Result<void>();
      else
        return take(first, taken);
    };
    return output;
  }
  template <class T, class Take>
  static RecordOutput taken_by(Take take, const T& failed) {
    RecordOutput output = taken_by<T>(std::move(take));
    output.set_on_failure(failed);
    return output;
  }
  /// Sets results of records that fail to `failed`. Otherwise they stay as they are, which is zero in a
  /// new file.
  template <detail::RecordRangeOf R>
  RecordOutput(R&& results, const std::ranges::range_value_t<R>& failed) : RecordOutput(results) {
    set_on_failure(failed);
  }
  template <class T>
  RecordOutput(const RecordFile<T>& file, const std::type_identity_t<T>& failed) : RecordOutput(file) {
    set_on_failure(failed);
  }

  const RecordType& type() const noexcept { return type_; }

 private:
  friend class records::Sink;
  explicit RecordOutput(RecordType type) : type_(type) {}
  template <class T>
  void set_on_failure(const T& failed) {
    const auto value = std::as_bytes(std::span(&failed, 1));
    on_failure_.assign(value.begin(), value.end());
  }
  RecordType type_;
  std::span<std::byte> memory_;
  std::optional<std::string> path_;  // set: a file
  std::function<Result<void>(std::uint64_t first, const std::byte* from, std::size_t results)> take_;
  std::vector<std::byte> on_failure_;
};

}  // namespace wye
