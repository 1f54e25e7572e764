// A program of wye::models: a folder without a model is an error that names the file.
#include <wye/models/embed_queue.hpp>
#include <wye/models/encoder.hpp>
#include <wye/models/safetensors.hpp>
#include <wye/wye.hpp>

#include <cstdio>

int main() {
  auto runtime = wye::Runtime::open({.pool = {.backends = {"cpu"}}});
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 1;
  const auto model = wye::models::Encoder::open(*runtime, "no/such/folder");
  const auto file = wye::models::Safetensors::open("no/such/file");
  if (model || model.error() != wye::Errc::not_found) return std::puts("There is no such model."), 1;
  if (file || file.error() != wye::Errc::not_found) return std::puts("There is no such file."), 1;
  std::puts(model.error().sentence().c_str());
  return 0;
}
