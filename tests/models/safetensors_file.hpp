#pragma once
/// Files of tensors, written and checked apart from the library's reader.
#include <wye/models/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wye::test {

/// Returns a file with that header and data. It states `stated` as the header's length.
inline std::vector<std::byte> file_of_tensors(std::string_view header, std::span<const std::byte> data,
                                              std::uint64_t stated) {
  std::vector<std::byte> file;
  for (unsigned i = 0; i < 8; ++i) file.push_back(static_cast<std::byte>(stated >> (8 * i)));
  const auto text = std::as_bytes(std::span(header));
  file.insert(file.end(), text.begin(), text.end());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}
inline std::vector<std::byte> file_of_tensors(std::string_view header, std::span<const std::byte> data) {
  return file_of_tensors(header, data, header.size());
}

inline std::uint64_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::boolean:
    case ElementType::int8:
    case ElementType::uint8: return 1;
    case ElementType::int16:
    case ElementType::uint16:
    case ElementType::float16:
    case ElementType::bfloat16: return 2;
    case ElementType::int32:
    case ElementType::uint32:
    case ElementType::float32: return 4;
    case ElementType::int64:
    case ElementType::uint64:
    case ElementType::float64: return 8;
    default: return 0;
  }
}

/// Returns what is wrong with an accepted file, which has these bytes; otherwise nothing.
inline std::string wrong_with(const models::Safetensors& file, std::span<const std::byte> bytes) {
  std::uint64_t header = 0;
  for (unsigned i = 0; i < 8; ++i) header |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  const std::byte* at = bytes.data() + 8 + header;
  for (const models::Tensor& tensor : file.tensors()) {
    if (tensor.bytes.data() != at) return "a tensor does not begin where the last one ends";
    at += tensor.bytes.size();
    if (at > bytes.data() + bytes.size()) return "a tensor ends beyond the file";
    if (tensor.shape.size() > models::Safetensors::max_dimensions) return "a tensor has too many dimensions";
    if (bytes_of(tensor.type) == 0) return "a tensor has no known type";
    std::uint64_t size = bytes_of(tensor.type);
    for (const std::uint64_t dimension : tensor.shape)
      if (__builtin_mul_overflow(size, dimension, &size))
        return "a tensor has more elements than 64 bits count";
    if (size != tensor.bytes.size()) return "a tensor has other bytes than its shape";
    const auto found = file.tensor(tensor.name);
    if (!found || found->bytes.data() != tensor.bytes.data() || found->bytes.size() != tensor.bytes.size())
      return "a tensor is not found by its name";
  }
  return at == bytes.data() + bytes.size() ? "" : "bytes are left over";
}

}  // namespace wye::test
