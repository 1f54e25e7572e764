// wye_ptx NVRTC INCLUDE TARGET FUNCTION INPUT OUTPUT: compiles one of wye's own kernels while the
// library is built.
#include <wye/kernel/compile.hpp>

#include <cstdio>
#include <string>
#include <string_view>

#include "../wyec/write.hpp"

int main(int count, char** arguments) {
  if (count != 7) {
    std::fputs("wye_ptx NVRTC INCLUDE TARGET FUNCTION INPUT OUTPUT\n", stderr);
    return 2;
  }
  const auto fail = [&](const std::string& why) {
    std::fprintf(stderr, "wye_ptx: %s\n", why.c_str());
    return 1;
  };
  auto source = wye::CudaCpp::from_file(arguments[5]);
  if (!source) return fail(source.error().describe());
  source->include_directories.emplace_back(arguments[2]);
  source->entry = arguments[4];
  const auto compiled = wye::compile(*source, {.target = arguments[3], .nvrtc = arguments[1]});
  if (!compiled) return fail(compiled.error().describe());
  const std::string_view code =
      compiled->cubin ? std::string_view(reinterpret_cast<const char*>(compiled->cubin->bytes.data()),
                                         compiled->cubin->bytes.size())
                      : compiled->ptx->text;
  const auto why = wyec::write_file(arguments[6], code);
  return why ? fail(*why) : 0;
}
