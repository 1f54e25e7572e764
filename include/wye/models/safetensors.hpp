#pragma once
/// Files of the format safetensors: named tensors behind a header of JSON.
#include <wye/base/result.hpp>
#include <wye/device/schema.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace wye::inline v0::models {

/// A tensor of a file. It refers to memory of its `Safetensors`.
struct Tensor {
  std::string_view name = {};
  ElementType type = ElementType::opaque;
  std::span<const std::uint64_t> shape = {};  ///< the outermost dimension first; empty: one element
  std::span<std::byte> bytes = {};            ///< the elements, row after row, little-endian
};

/// A file of tensors in memory, checked when it is opened. Copies share one mapping. The last copy
/// must outlive all jobs and arrays that use its tensors.
/// Threads: thread-safe. The bytes of tensors are memory as any other.
/// Source:  github.com/huggingface/safetensors, "Format". Files that its own reader refuses are
///          refused.
class WYE_API Safetensors {
 public:
  /// The longest header in bytes, as in the format's own reader.
  static constexpr std::uint64_t max_header = 100'000'000;
  /// The most dimensions of a tensor.
  static constexpr std::uint32_t max_dimensions = 32;

  /// Maps a file. Bytes of tensors are read when they are used. The mapping is private: writes to a
  /// tensor change no file. A process that shortens the file meanwhile ends this one by SIGBUS.
  /// Errors: not_found, io, invalid_argument (`path` is no regular file); those of `borrow`.
  /// Cost:   reads the header. Memory is proportional to it.
  static Result<Safetensors> open(const std::string& path);
  /// Does the same with the bytes of a file in memory, which must outlive every copy. `subject`
  /// begins the sentences of errors: "File 'a.safetensors'".
  /// Errors: corrupt (the header contradicts the file, itself or the format), unsupported (an
  ///         element type or key of a tensor, with the supported ones; a header or a number of
  ///         dimensions beyond its limit).
  static Result<Safetensors> borrow(std::span<std::byte> bytes, std::string subject = "Memory");

  /// Returns all tensors in the order of their bytes, which have neither gaps nor overlaps.
  std::span<const Tensor> tensors() const noexcept;
  /// Returns the tensor of that name.
  /// Errors: not_found, with names that resemble it.
  /// Cost:   a binary search.
  Result<Tensor> tensor(std::string_view name) const;
  /// Returns the text that the file's `__metadata__` has at that key, if there is one.
  std::optional<std::string_view> metadata(std::string_view key) const noexcept;

  /// Returns the elements of a tensor, for `Runtime::borrow` or the host.
  /// Errors: not_found; invalid_argument (another element type; another shape than `shape`, with
  ///         both); unsupported (the address is no multiple of the element's size: copy the bytes);
  ///         corrupt (a `bool` other than 0 and 1).
  template <class T>
  Result<std::span<T>> elements(std::string_view name) const {
    return typed<T>(elements_of(name, element_type<T>(), nullptr));
  }
  template <class T>
  Result<std::span<T>> elements(std::string_view name, std::span<const std::uint64_t> shape) const {
    return typed<T>(elements_of(name, element_type<T>(), &shape));
  }
  template <class T>
  Result<std::span<T>> elements(std::string_view name, std::initializer_list<std::uint64_t> shape) const {
    return elements<T>(name, std::span<const std::uint64_t>(shape.begin(), shape.size()));
  }

 private:
  struct WYE_LOCAL State;
  template <class T>
  static Result<std::span<T>> typed(Result<std::span<std::byte>> bytes) {
    static_assert(element_type<T>() != ElementType::opaque, "T is the type of an element");
    if (!bytes) return std::move(bytes).error();
    return std::span<T>(reinterpret_cast<T*>(bytes->data()), bytes->size() / sizeof(T));
  }
  explicit Safetensors(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  Result<std::span<std::byte>> elements_of(std::string_view name, ElementType type,
                                           const std::span<const std::uint64_t>* shape) const;
  std::shared_ptr<const State> state_;
};

}  // namespace wye::models
