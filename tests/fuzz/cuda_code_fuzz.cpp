// Cubins and PTX of any origin: they are read within their bounds, and parsed or rejected.
#include "kernel/reflect/cuda_code.hpp"

#include <cstdlib>

#include "fuzz/edits.hpp"
#include "kernel/cubin.hpp"
#include "kernel/reflect/match.hpp"

namespace {

using namespace wye;

void check(const Result<kernel::CudaCode>& code) {
  if (!code) return;
  std::uint32_t end = 0;
  for (const kernel::PushMember& member : code->interface.members) {
    if (member.size == 0 || member.offset < end) std::abort();
    end = member.offset + member.size;
  }
  if (end != code->interface.push_bytes || code->architecture.number == 0) std::abort();
  const ParamSchema declared{{Slot{"x", SlotKind::buffer, Access::read_write, ElementType::float32, 4},
                              Slot{"s", SlotKind::scalar, Access::read, ElementType::float32, 4}}};
  if (const auto matched = kernel::match(declared, code->interface, "k", kernel::Language::function))
    if (matched->passing.size() != 2 || matched->parameter_bytes != end) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::byte> cubin = test::CubinMaker().make();
  static const std::string_view text = test::scale_ptx;
  static const std::vector<char> ptx(text.begin(), text.end());
  test::Input input(data, size);
  if (input.take<std::uint8_t>() % 2 == 0) {
    const auto bytes = test::edited(cubin, input);
    const auto code = kernel::reflect_cubin(bytes, "scale");
    if (bytes == cubin && !code) std::abort();
    check(code);
  } else {
    const auto changed = test::edited(ptx, input);
    const std::string_view whole(changed.data(), changed.size());
    const auto code = kernel::reflect_ptx(whole, "scale");
    if (changed == ptx && !code) std::abort();
    check(code);
    check(kernel::reflect_ptx(whole, "many"));
  }
  return 0;
}
