#include <wye/workloads/quantized.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace wye::inline v0::workloads {
namespace {

/// The scale, the minimum or zero point, and the integers of a block.
struct Decoded {
  double scale = 0;
  double minimum = 0;
  double zero = 0;
  std::vector<int> integers;
};

template <class T>
T number_at(const std::uint8_t* from) {
  T number;
  std::memcpy(static_cast<void*>(&number), from, sizeof number);
  return number;
}

Decoded decode(const std::uint8_t* block, Quantization q) {
  Decoded decoded;
  decoded.scale = static_cast<float>(number_at<half>(block));
  const std::uint8_t* integers = block + 2;
  if (q.type == BlockType::q4_0) decoded.zero = 8;
  if (q.type == BlockType::q4_1) decoded.minimum = static_cast<float>(number_at<half>(block + 2));
  if (q.type == BlockType::int4 || q.type == BlockType::int8)
    decoded.zero = number_at<std::int16_t>(block + 2);
  if (q.type != BlockType::q4_0 && q.type != BlockType::q8_0) integers += 2;
  const std::uint32_t n = q.group;
  for (std::uint32_t i = 0; i < n; ++i)
    if (q.type == BlockType::q8_0 || q.type == BlockType::int8)
      decoded.integers.push_back(static_cast<std::int8_t>(integers[i]));
    else
      decoded.integers.push_back(i < n / 2 ? integers[i] & 15 : integers[i - n / 2] >> 4);
  return decoded;
}

/// Quantizes with a zero point: the range has zero, and d is rounded first.
void quantize_with_zero(std::span<const float> x, int levels, int lowest, float& scale, int& zero,
                        std::vector<int>& integers) {
  float low = 0, high = 0;
  for (float v : x) low = std::min(low, v), high = std::max(high, v);
  const float range = high - low;
  scale = range < 0x1p-100f ? 0.0f : std::min(range / static_cast<float>(levels), 65504.0f);
  scale = static_cast<float>(half(scale));
  const float by = scale == 0 ? 0.0f : 1 / scale, most = static_cast<float>(levels);
  const float scaled = -low * by;
  const float at = std::min(std::floor(scaled + 0.5f), most);
  zero = static_cast<int>(at) + lowest;
  for (float v : x) {
    const float product = v * by;
    integers.push_back(static_cast<int>(std::clamp(std::floor(product + (at + 0.5f)), 0.0f, most)) + lowest);
  }
}

}  // namespace

namespace reference {

std::vector<std::uint8_t> quantize(std::span<const float> x, Quantization q) {
  std::vector<std::uint8_t> blocks;
  const auto append = [&](std::uint32_t bits) {
    blocks.push_back(static_cast<std::uint8_t>(bits));
    blocks.push_back(static_cast<std::uint8_t>(bits >> 8));
  };
  for (std::size_t first = 0; first + q.group <= x.size(); first += q.group) {
    const auto block = x.subspan(first, q.group);
    float largest = 0, low = block[0], high = block[0], scale = 0;
    bool finite = true;
    for (float v : block) {
      finite = finite && std::isfinite(v);
      if (std::abs(v) > std::abs(largest)) largest = v;
      if (v < low) low = v;
      if (v > high) high = v;
    }
    int zero = 0;
    std::vector<int> integers;
    if (!finite || (q.type != BlockType::q4_0 && q.type != BlockType::q8_0 &&
                    !std::isfinite(std::max(high, 0.0f) - std::min(low, 0.0f)))) {
      append(0x7e00u);
      if (q.type != BlockType::q4_0 && q.type != BlockType::q8_0) append(0);
      integers.assign(q.group, 0);
    } else if (q.type == BlockType::q4_0) {
      if (std::abs(largest) < 0x1p-100f) largest = 0;
      scale = largest / -8;
      const float by = scale == 0 ? 0.0f : 1 / scale;
      append(half(scale).bits);
      for (float v : block) {
        const float product = v * by;
        integers.push_back(std::min(15, static_cast<int>(product + 8.5f)));
      }
    } else if (q.type == BlockType::q4_1) {
      scale = high - low < 0x1p-100f ? 0.0f : (high - low) / 15;
      const float by = scale == 0 ? 0.0f : 1 / scale;
      append(half(scale).bits);
      append(half(low).bits);
      for (float v : block) {
        const float product = (v - low) * by;
        integers.push_back(std::min(15, static_cast<int>(product + 0.5f)));
      }
    } else if (q.type == BlockType::q8_0) {
      scale = std::abs(largest) < 0x1p-100f ? 0.0f : std::abs(largest) / 127;
      const float by = scale == 0 ? 0.0f : 1 / scale;
      append(half(scale).bits);
      for (float v : block) integers.push_back(static_cast<int>(std::round(v * by)));
    } else {
      const bool wide = q.type == BlockType::int8;
      quantize_with_zero(block, wide ? 255 : 15, wide ? -128 : 0, scale, zero, integers);
      append(half(scale).bits);
      append(static_cast<std::uint32_t>(zero));
    }
    if (q.type == BlockType::q8_0 || q.type == BlockType::int8)
      for (int integer : integers) blocks.push_back(static_cast<std::uint8_t>(integer));
    else
      for (std::uint32_t i = 0; i < q.group / 2; ++i)
        blocks.push_back(static_cast<std::uint8_t>(integers[i] | integers[i + q.group / 2] << 4));
  }
  return blocks;
}

std::vector<float> dequantize(std::span<const std::uint8_t> blocks, Quantization q) {
  std::vector<float> x;
  for (std::size_t first = 0; first + block_bytes(q) <= blocks.size(); first += block_bytes(q)) {
    const Decoded block = decode(blocks.data() + first, q);
    for (int integer : block.integers) {
      const double product = block.scale * (integer - block.zero);
      // Adding zero would change the sign of a zero.
      x.push_back(static_cast<float>(q.type == BlockType::q4_1 ? product + block.minimum : product));
    }
  }
  return x;
}

std::vector<double> quantized_matmul(std::span<const float> x, std::span<const std::uint8_t> weights,
                                     std::uint64_t rows, Quantization q, bool sizes) {
  std::vector<double> w;
  for (std::size_t first = 0; first + block_bytes(q) <= weights.size(); first += block_bytes(q)) {
    const Decoded block = decode(weights.data() + first, q);
    for (int integer : block.integers) {
      const double product = block.scale * (integer - block.zero);
      w.push_back(sizes ? std::abs(product) + std::abs(block.minimum) : product + block.minimum);
    }
  }
  std::vector<double> y;
  const std::size_t inner = rows == 0 ? 0 : x.size() / rows;
  if (inner == 0) return y;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < w.size() / inner; ++column) {
      double sum = 0;
      for (std::size_t i = 0; i < inner; ++i) {
        const double v = x[row * inner + i];
        sum += (sizes ? std::abs(v) : v) * w[column * inner + i];
      }
      y.push_back(sum);
    }
  return y;
}

}  // namespace reference

}  // namespace wye::workloads
