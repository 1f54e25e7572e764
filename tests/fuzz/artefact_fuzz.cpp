// The disk tier reads a file: it accepts what was stored and rejects everything else.
#include <cstdlib>

#include "cache/store/artefact_bytes.hpp"
#include "fuzz/edits.hpp"
#include "fuzz/record.hpp"

namespace {

using namespace wye;

device::Artefact sample() {
  device::Artefact artefact;
  artefact.kernel = "scale";
  artefact.language = "spirv";
  artefact.code.assign(100, std::byte{7});
  artefact.specialization = {{.id = 1, .size = 4, .bits = 5}, {.id = 2, .size = 8, .bits = 6}};
  artefact.schema = {{Slot{"x", SlotKind::buffer, Access::read_write, ElementType::float32, 4},
                      Slot{"s", SlotKind::scalar, Access::read, ElementType::float32, 4}}};
  artefact.passing = {{.kind = device::Passing::Kind::descriptor, .binding = 0, .offset = 0},
                      {.kind = device::Passing::Kind::bytes, .binding = 0, .offset = 0}};
  artefact.parameter_bytes = 4;
  artefact.workgroup = 64;
  artefact.needs.add(Feature::float64);
  artefact.key = digest(std::as_bytes(std::span("key", 3)));
  return artefact;
}

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const device::Artefact artefact = sample();
  static const std::vector<std::byte> valid = cache::encode(artefact);
  test::Input input(data, size);
  const bool signs = input.take<std::uint8_t>() % 4 != 0;
  std::vector<std::byte> bytes = test::edited(valid, input);
  if (signs) test::sign_record(bytes);
  const auto decoded = cache::decode(bytes, artefact.key);
  if (bytes == valid) expect(decoded.has_value());
  if (!signs && bytes != valid) expect(!decoded);
  // An accepted record was stored: writing it again gives the same bytes.
  if (decoded) expect(cache::encode(*decoded) == bytes);
  return 0;
}
