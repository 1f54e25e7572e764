// wye_ptx NVRTC INCLUDE TARGET FUNCTION INPUT OUTPUT: compiles one of wye's own kernels while the library is built.
#include <wye/kernel/compile.hpp>

#include <cstdio>
#include <fstream>
#include <string>

int main(int count, char** arguments) {
  if (count != 7) {
    std::fputs("wye_ptx NVRTC INCLUDE TARGET FUNCTION INPUT OUTPUT\n", stderr);
    return 2;
  }
  const auto fail = [&](const std::string& why) {
    std::fprintf(stderr, "wye_ptx: %s\n", why.c_str());
    std::remove(arguments[6]);
    return 1;
  };
  auto source = wye::CudaCpp::from_file(arguments[5]);
  if (!source) return fail(source.error().describe());
  source->include_directories.emplace_back(arguments[2]);
  source->entry = arguments[4];
  const auto compiled = wye::compile(*source, {.target = arguments[3], .nvrtc = arguments[1]});
  if (!compiled) return fail(compiled.error().describe());
  std::ofstream output(arguments[6], std::ios::binary);
  if (compiled->cubin)
    output.write(reinterpret_cast<const char*>(compiled->cubin->bytes.data()),
                 static_cast<std::streamsize>(compiled->cubin->bytes.size()));
  else
    output << compiled->ptx->text;
  output.close();
  return output ? 0 : fail(std::string(arguments[6]) + " cannot be written.");
}
