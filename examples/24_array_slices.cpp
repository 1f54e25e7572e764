// Slices of one array: independent jobs, each result read as soon as it is there, and only what is
// used is transferred.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <wye/workloads/normalize.hpp>
#include <wye/wye.hpp>

namespace {

int fail(const wye::Error& error) { return std::puts(error.describe().c_str()), 1; }

}  // namespace

int main() {
  auto runtime = wye::Runtime::open();
  if (!runtime) return fail(runtime.error());

  constexpr std::uint64_t columns = 1024, rows = 256, stripes = 4, stripe = columns * rows / stripes;
  wye::Array<float> picture = runtime->array(std::vector<float>(columns * rows, 3.0f));

  // One job for each stripe. They have no element in common, so none waits for another.
  std::vector<wye::Ticket> tickets;
  for (std::uint64_t s = 0; s < stripes; ++s)
    tickets.push_back(runtime->submit(wye::workloads::normalize(picture.slice(s * stripe, stripe), columns)));

  // A view of a stripe waits for the job of that stripe only.
  for (std::uint64_t s = 0; s < stripes; ++s) {
    auto view = picture.slice(s * stripe, stripe).read();
    if (!view) return fail(view.error());
    std::printf("stripe %d begins with %g\n", static_cast<int>(s), (*view)[0]);  // 1 / sqrt(1024)
    if ((*view)[0] < 0.0312f || (*view)[0] > 0.0313f) return 1;
  }

  // The host changes 4 bytes. The next job on a GPU transfers these, not the picture.
  {
    auto pixel = picture.slice(0, 1).write();
    if (!pixel) return fail(pixel.error());
    (*pixel)[0] = 1.0f;
  }
  auto done = runtime->run(wye::workloads::normalize(picture, columns));
  if (!done) return fail(done.error());
  std::printf("%s transferred for the whole picture, on %s\n", to_string(done->bytes_transferred()).c_str(),
              done->device().id.c_str());
  return 0;
}
