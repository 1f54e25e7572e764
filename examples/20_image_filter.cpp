// Blurs an 8-bit RGBA image and writes it to a file.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <vector>
#include <wye/wye.hpp>

namespace {

constexpr std::uint32_t width = 640, height = 480;

// A pixel is one word, as in most image libraries: red in the lowest byte.
std::uint32_t rgba(unsigned r, unsigned g, unsigned b) { return r | g << 8 | b << 16 | 0xff000000u; }

// Draws rings and a chessboard, whose sharp edges the blur removes.
std::vector<std::uint32_t> picture() {
  std::vector<std::uint32_t> pixels(width * height);
  for (std::uint32_t y = 0; y < height; ++y)
    for (std::uint32_t x = 0; x < width; ++x) {
      const float dx = static_cast<float>(x) - width / 2.0f, dy = static_cast<float>(y) - height / 2.0f;
      const bool ring = static_cast<int>(std::sqrt(dx * dx + dy * dy)) / 24 % 2 == 0;
      const bool field = (x / 40 + y / 40) % 2 == 0;
      pixels[y * width + x] = rgba(ring ? 230 : 40, field ? 200 : 60, x * 255 / width);
    }
  return pixels;
}

bool write_ppm(const char* path, const std::vector<std::uint32_t>& pixels) {
  std::ofstream file(path, std::ios::binary);
  file << "P6\n" << width << ' ' << height << "\n255\n";
  for (std::uint32_t pixel : pixels)
    file.put(static_cast<char>(pixel)).put(static_cast<char>(pixel >> 8)).put(static_cast<char>(pixel >> 16));
  return file.flush().good();
}

struct Blur {
  std::uint32_t width;
  std::uint32_t height;
  std::uint32_t radius;
};

// Averages a square around each pixel. Pixels outside the picture are those at the nearest edge.
constexpr char blur_glsl[] = R"(#version 450
layout(local_size_x = 16, local_size_y = 16) in;
struct Blur { uint width; uint height; uint radius; };
layout(set = 0, binding = 0) readonly buffer From { uint from[]; };
layout(set = 0, binding = 1) writeonly buffer To { uint to[]; };
layout(push_constant) uniform P { Blur blur; };
void main() {
  ivec2 at = ivec2(gl_GlobalInvocationID.xy), size = ivec2(blur.width, blur.height);
  if (at.x >= size.x || at.y >= size.y) return;
  int r = int(blur.radius);
  uvec3 sum = uvec3(0);
  for (int dy = -r; dy <= r; ++dy)
    for (int dx = -r; dx <= r; ++dx) {
      ivec2 near = clamp(at + ivec2(dx, dy), ivec2(0), size - 1);
      uint pixel = from[near.y * size.x + near.x];
      sum += uvec3(pixel, pixel >> 8, pixel >> 16) & 255;
    }
  uint n = uint((2 * r + 1) * (2 * r + 1));
  uvec3 mean = (sum + n / 2) / n;
  to[at.y * size.x + at.x] = mean.r | mean.g << 8 | mean.b << 16 | 0xff000000u;
})";

void blur_on_host(wye::Range range, std::span<const std::uint32_t> from, std::span<std::uint32_t> to,
                  Blur blur) {
  const auto r = static_cast<std::int64_t>(blur.radius);
  for (const std::uint64_t i : range) {
    const auto x = static_cast<std::int64_t>(i % blur.width), y = static_cast<std::int64_t>(i / blur.width);
    unsigned red = 0, green = 0, blue = 0;
    for (std::int64_t dy = -r; dy <= r; ++dy)
      for (std::int64_t dx = -r; dx <= r; ++dx) {
        const auto near_x = std::clamp<std::int64_t>(x + dx, 0, blur.width - 1);
        const auto near_y = std::clamp<std::int64_t>(y + dy, 0, blur.height - 1);
        const std::uint32_t pixel = from[static_cast<std::size_t>(near_y * blur.width + near_x)];
        red += pixel & 255, green += pixel >> 8 & 255, blue += pixel >> 16 & 255;
      }
    const auto n = static_cast<unsigned>((2 * r + 1) * (2 * r + 1));
    to[i] = rgba((red + n / 2) / n, (green + n / 2) / n, (blue + n / 2) / n);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : "blurred.ppm";
  using Filter = wye::Kernel<wye::Read<std::uint32_t>, wye::Write<std::uint32_t>, Blur>;
  const auto blur =
      Filter::make({.name = "blur", .sources = {wye::Glsl{.text = blur_glsl}, wye::host(blur_on_host)}});
  if (!blur) return std::puts(blur.error().describe().c_str()), 1;
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  // Every device returns the same bytes: the filter uses integers.
  const std::vector<std::uint32_t> sharp = picture();
  std::vector<std::uint32_t> first;
  for (const wye::Device& device : runtime->devices()) {
    std::vector<std::uint32_t> blurred(sharp.size());
    auto done = runtime->run(wye::Job((*blur)(sharp, blurred, {width, height, 3}).over({width, height}),
                                      wye::workload_types::image),
                             {.on = device.id()});
    if (!done && done.error() == wye::Errc::unsupported) continue;  // the kernel has no CUDA C++
    if (!done) return std::puts(done.error().describe().c_str()), 1;
    std::printf("blurred on %s\n", device.info().name.c_str());
    if (first.empty()) first = blurred;
    if (blurred != first) return std::puts("The results of two devices differ."), 1;
  }
  if (!write_ppm(path, first)) return std::printf("File '%s' cannot be written.\n", path), 1;
  std::printf("written to %s\n", path);
  return 0;
}
