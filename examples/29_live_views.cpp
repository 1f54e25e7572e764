// Moves a network and draws it, as a live view does. Prints frames per second and writes the last pictures as PNG.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>
#include <wye/workloads/force_layout.hpp>
#include <wye/workloads/render.hpp>
#include <wye/wye.hpp>

namespace {

namespace workloads = wye::workloads;

constexpr std::uint32_t nodes = 300, links = 600, frames = 20;
constexpr workloads::Picture picture{.width = 640, .height = 360};

// Appends the number with its most significant byte first.
void append(std::string& bytes, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
}

// Appends a chunk of a PNG file: its length, its name and contents, and their CRC.
void append_chunk(std::string& file, const std::string& name_and_contents) {
  append(file, static_cast<std::uint32_t>(name_and_contents.size() - 4));
  file += name_and_contents;
  std::uint32_t crc = ~0u;
  for (const char byte : name_and_contents) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  append(file, ~crc);
}

// Writes pixels as a PNG file without compression.
bool write_png(const std::string& path, const std::vector<std::uint32_t>& pixels) {
  std::string file("\x89PNG\r\n\x1a\n", 8), header("IHDR"), data("IDAT\x78\x01");
  append(header, picture.width);
  append(header, picture.height);
  header += std::string("\x08\x06\x00\x00\x00", 5);  // 8 bits, red, green, blue and alpha
  std::uint32_t a = 1, b = 0;                        // Adler-32
  for (std::uint32_t y = 0; y < picture.height; ++y) {
    std::string row(1, '\0');  // no filter
    for (std::uint32_t x = 0; x < picture.width; ++x)
      for (int shift = 0; shift < 32; shift += 8)
        row += static_cast<char>(pixels[y * picture.width + x] >> shift);
    // A row is a stored block: a byte that marks the last block, its length, and the complement of its length.
    const auto length = static_cast<std::uint32_t>(row.size()), complement = ~length;
    data += y + 1 == picture.height ? '\x01' : '\x00';
    for (const std::uint32_t word : {length, complement}) {
      data += static_cast<char>(word);
      data += static_cast<char>(word >> 8);
    }
    data += row;
    for (const char byte : row) {
      a = (a + static_cast<unsigned char>(byte)) % 65521;
      b = (b + a) % 65521;
    }
  }
  append(data, b << 16 | a);
  append_chunk(file, header);
  append_chunk(file, data);
  append_chunk(file, "IEND");
  return std::ofstream(path, std::ios::binary)
      .write(file.data(), static_cast<std::streamsize>(file.size()))
      .flush()
      .good();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? std::string(argv[1]) + "/" : "";
  auto runtime = wye::Runtime::open();
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;

  // A chain of nodes with random links near by.
  std::mt19937 random(1);
  std::vector<std::uint32_t> ends;
  std::vector<float> ranks;
  for (std::uint32_t i = 0; i < links; ++i) {
    const std::uint32_t from = i % nodes, reach = i < nodes ? 1 : static_cast<std::uint32_t>(random() % 20);
    ends.insert(ends.end(), {from, (from + reach) % nodes});
  }
  for (std::uint32_t i = 0; i < nodes; ++i)
    ranks.push_back(0.2f + 0.8f * static_cast<float>(random() % 1000) / 999);

  // The network stays on the device. Only pixels come back.
  const auto by_node = workloads::network_links(nodes, ends);
  const std::vector<float> start = workloads::force_layout_start(nodes);
  const std::vector<float> zeros(workloads::force_layout_state_size(nodes));
  wye::Array<float> positions = runtime->array(start), state = runtime->array(zeros);
  const wye::Array<std::uint32_t> offsets = runtime->array(by_node.offsets),
                                  targets = runtime->array(by_node.targets), both_ends = runtime->array(ends);
  const wye::Array<float> values = runtime->array(ranks);
  std::vector<std::uint32_t> network(std::size_t{picture.width} * picture.height), heat = network;

  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t frame = 0; frame < frames; ++frame) {
    const double time = frame / 60.0;
    const auto moved = runtime->run(
        workloads::force_layout(offsets, targets, positions, state, {.repulsion = 0.1f, .iterations = 5}));
    if (!moved) return std::puts(moved.error().describe().c_str()), 1;
    const workloads::PictureView view{.scale = 6};
    const auto drawn = runtime->run(workloads::render_network(
        positions, values, both_ends, network, picture, {.view = view, .time = time, .diameter = 1.5f}));
    if (!drawn) return std::puts(drawn.error().describe().c_str()), 1;
    const auto heated = runtime->run(workloads::render_heatmap(positions, values, heat, picture,
                                                               {.view = view, .time = time, .spread = 0.1f}));
    if (!heated) return std::puts(heated.error().describe().c_str()), 1;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%.0f frames per second, of two pictures each\n", frames / seconds.count());

  for (const auto& [name, pixels] : {std::pair("network.png", &network), std::pair("heat.png", &heat)}) {
    if (!write_png(folder + name, *pixels)) return std::printf("%s cannot be written\n", name), 1;
    std::printf("%s\n", name);
  }
  return 0;
}
