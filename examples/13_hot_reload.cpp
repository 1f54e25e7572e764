// Hot reload: after a kernel's file is saved, later jobs run the new text. A text that does not
// compile is reported, and the kernel does not change. WYE_HOT_RELOAD=1 enables it in any program
// that reads kernels from files.
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>
#include <wye/wye.hpp>

namespace {

int fail(const wye::Error& error) { return std::puts(error.describe().c_str()), 1; }

/// Saves a file as an editor does.
void save(const std::string& file, const std::string& formula) {
  std::ofstream(file) << "#version 450\n"
                         "layout(local_size_x = 256) in;\n"
                         "layout(set = 0, binding = 0) buffer X { float x[]; };\n"
                         "void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) "
                      << formula << "; }\n";
}

}  // namespace

int main() {
  const std::string file = "13_hot_reload.comp";
  save(file, "x[i] *= 2.0");
  auto source = wye::Glsl::from_file(file);
  if (!source) return fail(source.error());
  const auto kernel = wye::Kernel<wye::ReadWrite<float>>::make({.name = "change", .sources = {*source}});
  if (!kernel) return fail(kernel.error());

  std::mutex mutex;
  std::condition_variable told;
  std::vector<wye::Reload> reloads;
  auto runtime = wye::Runtime::open({.pool = {.backends = {"vulkan"}},
                                     .hot_reload = true,
                                     .on_reload = [&](const wye::Reload& reload) {  // on the thread of events
                                       const std::lock_guard lock(mutex);
                                       reloads.push_back(reload);
                                       told.notify_one();
                                     }});
  if (!runtime) return std::puts(runtime.error().describe().c_str()), 0;  // no Vulkan on this machine

  std::vector<float> x(1000, 1.0f);
  const auto run = [&] { return runtime->submit((*kernel)(x)).wait(); };
  const auto next_reload = [&] {
    std::unique_lock lock(mutex);
    told.wait(lock, [&] { return !reloads.empty(); });
    const wye::Reload reload = reloads.front();
    reloads.clear();
    return reload;
  };

  if (auto done = run(); !done) return fail(done.error());
  std::printf("x[0] = %g\n", x[0]);  // 2

  save(file, "x[i] += 40.0");
  if (const auto reload = next_reload(); reload.error) return fail(*reload.error);
  if (auto done = run(); !done) return fail(done.error());
  std::printf("x[0] = %g\n", x[0]);  // 42

  save(file, "x[i] = y");
  if (const auto reload = next_reload(); reload.error) std::puts(reload.error->describe().c_str());
  if (auto done = run(); !done) return fail(done.error());
  std::printf("x[0] = %g\n", x[0]);  // 82: the kernel has not changed

  std::remove(file.c_str());
  return x.front() == 82.0f && x.back() == 82.0f ? 0 : 1;
}
