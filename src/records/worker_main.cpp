// The main function of a worker process.
#include <wye/records/distribute.hpp>

#include <cstdlib>
#include <utility>

#include "process/workers.hpp"
#include "serving.hpp"
#include "text.hpp"

namespace wye::inline v0 {
namespace records {
namespace {

std::string names_of(std::span<const RecordFunction> functions) {
  std::string names;
  for (const RecordFunction& function : functions)
    names += (names.empty() ? "'" : ", '") + function.name() + "'";
  return names.empty() ? "none" : names;
}

/// Opens the runtime of a worker. Its cache is an advantage, and no condition.
Result<Runtime> open_runtime(const Variables& variables) {
  auto options = RuntimeOptions::from_variables(variables);
  if (!options) return std::move(options).error();
  options->cache.require_directory = false;
  return Runtime::open(*std::move(options));
}

int serve(process::WorkerEnd& end, std::span<const RecordFunction> functions) {
  const auto order = order_from(end.message());
  if (!order) {
    refuse(end, Error(Errc::corrupt, "The message to a worker process cannot be read."));
    return EXIT_FAILURE;
  }
  for (const RecordFunction& function : functions) {
    if (function.name() != order->function) continue;
    if (function.input().size != order->layout.input || function.output().size != order->layout.output) break;
    Serving serving(end, function,
                    {.layout = order->layout,
                     .device = order->device,
                     .number = order->number,
                     .io_workers = order->io_workers,
                     .open_runtime = [&] { return open_runtime(order->options); }});
    serving.run();
    return EXIT_SUCCESS;
  }
  refuse(end, Error(Errc::not_found,
                    text("Record function '", order->function, "' with records of ", order->layout.input,
                         " bytes and results of ", order->layout.output,
                         " bytes is not in the list of wye::worker_main (", names_of(functions), ").")));
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace records

std::optional<int> worker_main(int, char**, std::span<const RecordFunction> functions) {
  auto end = process::WorkerEnd::join();
  if (!end) return EXIT_FAILURE;  // the parent sees a process that has not joined
  if (!*end) return std::nullopt;
  return records::serve(**end, functions);
}

}  // namespace wye
