// A bundle of kernels: reading it returns what was written, or nothing.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "base/checksum.hpp"
#include "cache/store/artefact_bytes.hpp"
#include "cache/store/bundle.hpp"
#include "fuzz/edits.hpp"

namespace {

using namespace wye;

constexpr std::size_t title_bytes = 26, line_bytes = 48;

device::Artefact kernel(const std::string& name) {
  device::Artefact artefact;
  artefact.kernel = name;
  artefact.language = "spirv";
  artefact.code.assign(20, std::byte{7});
  artefact.key = Hasher().add(std::string_view(name)).finish();
  return artefact;
}

/// A file in memory: 20,000 files on a disk take a minute.
int file() {
  static const int descriptor = memfd_create("bundle", MFD_CLOEXEC);
  return descriptor;
}
std::string path() { return "/proc/self/fd/" + std::to_string(file()); }

void put(const std::vector<std::byte>& bytes) {
  if (ftruncate(file(), 0) != 0 ||
      pwrite(file(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    std::abort();
}

std::vector<std::byte> valid_bundle(const std::vector<device::Artefact>& kernels) {
  std::map<Digest, std::vector<std::byte>> records;
  for (const device::Artefact& one : kernels) records.emplace(one.key, cache::encode(one));
  const std::string written = "/tmp/wye_bundle_fuzz." + std::to_string(getpid());
  if (!cache::Bundle::write(written, records)) std::abort();
  std::ifstream in(written, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  unlink(written.c_str());
  const auto bytes = std::as_bytes(std::span(content));
  return {bytes.begin(), bytes.end()};
}

/// Corrects the checksum of the list, so that the reader of its lines is reached.
void sign(std::vector<std::byte>& bytes) {
  if (bytes.size() < title_bytes) return;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < 8; ++i) count |= std::to_integer<std::uint64_t>(bytes[18 + i]) << (8 * i);
  if (count > bytes.size() / line_bytes) return;
  const std::size_t end = title_bytes + static_cast<std::size_t>(count) * line_bytes;
  if (bytes.size() < end + sizeof(base::Checksum)) return;
  std::ranges::copy(base::checksum(std::span(bytes).first(end)),
                    bytes.begin() + static_cast<std::ptrdiff_t>(end));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<device::Artefact> kernels{kernel("a"), kernel("b"), kernel("c")};
  static const std::vector<std::byte> valid = valid_bundle(kernels);
  test::Input input(data, size);
  const bool signs = input.take<std::uint8_t>() % 4 != 0;
  std::vector<std::byte> bytes = test::edited(valid, input);
  if (signs) sign(bytes);
  put(bytes);
  const auto bundle = cache::Bundle::open(path());
  if (!bundle) {
    if (bytes == valid) std::abort();
    if (bundle.error() != Errc::corrupt && bundle.error() != Errc::unsupported) std::abort();
    return 0;
  }
  for (const device::Artefact& one : kernels) {
    const auto found = bundle->find(one.key);
    if (bytes == valid && !found.artefact) std::abort();
    if (found.artefact && cache::encode(*found.artefact) != cache::encode(one)) std::abort();
  }
  return 0;
}
