// A graph: jobs that are placed, prepared and recorded once, and run for every frame.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <wye/workloads/normalize.hpp>
#include <wye/workloads/similarity.hpp>
#include <wye/workloads/softmax.hpp>
#include <wye/wye.hpp>

namespace {

int fail(const wye::Error& error) { return std::puts(error.describe().c_str()), 1; }

}  // namespace

int main() {
  auto runtime = wye::Runtime::open();
  if (!runtime) return fail(runtime.error());

  constexpr std::uint64_t rows = 64, columns = 32;
  wye::Array<float> frame = runtime->array(std::vector<float>(rows * columns, 1.0f));
  wye::Array<float> matrix = runtime->array<float>(rows * rows);

  // A step follows those that write what it reads. `after` adds what the memory does not tell.
  wye::Graph graph;
  graph.add(wye::workloads::normalize(frame, columns));
  auto similar = graph.add(wye::workloads::similarity(frame, matrix, columns));
  graph.add(wye::workloads::softmax(matrix, rows)).after(similar);

  auto plan = graph.compile(*runtime, {.name = "frame"});
  if (!plan) return fail(plan.error());
  std::puts(plan->text().c_str());  // the device of each step and why, the copies, the memory

  for (std::uint64_t frames = 0; frames < 3; ++frames) {
    {
      auto next = frame.write();  // waits for the run before
      if (!next) return fail(next.error());
      for (std::uint64_t i = 0; i < rows * columns; ++i)
        (*next)[i] = static_cast<float>((i + frames) % 7) - 3.0f;
    }
    if (auto done = plan->run().wait(); !done) return fail(done.error());
    auto weights = matrix.read();
    if (!weights) return fail(weights.error());
    float sum = 0;
    for (std::uint64_t i = 0; i < rows; ++i) sum += (*weights)[i];
    std::printf("frame %d: the weights of its first row sum up to %.3f\n", static_cast<int>(frames),
                static_cast<double>(sum));
    if (sum < 0.999f || sum > 1.001f) return 1;
  }

  // Runs that are submitted keep their arguments; later ones get the new array.
  wye::Array<float> another = runtime->array(std::vector<float>(rows * columns, 2.0f));
  auto before = plan->run();
  for (std::size_t step : {std::size_t{0}, std::size_t{similar}})
    if (auto set = plan->set(step, 0, another); !set) return fail(set.error());
  auto after = plan->run();
  if (auto done = before.wait(); !done) return fail(done.error());
  if (auto done = after.wait(); !done) return fail(done.error());

  // A plan is saved as JSON. On the next start it places the graph as before, or the error names
  // what differs.
  auto saved = wye::PlanDescription::from_json(plan->json());
  if (!saved) return fail(saved.error());
  auto again = graph.compile(*runtime, {.name = "frame", .placement = *saved});
  if (!again) return fail(again.error());
  return again->run().wait() ? 0 : 1;
}
