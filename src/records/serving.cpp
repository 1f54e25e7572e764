#include "serving.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "called.hpp"
#include "text.hpp"

namespace wye::inline v0::records {
namespace {

/// Writes an error into memory of `to`. Returns its size.
template <class Memory>
std::uint64_t write(const Error& error, Memory& to) {
  const std::vector<std::byte> bytes = process::to_bytes(error);
  std::ranges::copy(bytes, to.begin());
  return bytes.size();
}

}  // namespace

void refuse(process::WorkerEnd& end, const Error& error) {
  SlotHeader& header = header_of(end.memory());
  header.error_bytes = write(error, header.error);
  header.stage = static_cast<std::uint32_t>(Stage::failed);
  end.ring();
}

void Serving::run() noexcept {
  try {
    if (auto prepared = prepare(); !prepared) return refuse(end_, prepared.error());
    if (function_.load_) return run_loaded_batches();
    begin_serving();
    while (Slot* const slot = next_batch()) run_batch(*slot);
  } catch (const std::bad_alloc&) {  // without memory for an error: the set sees the end of the worker
  }
}

/// Tells the set that batches can be given.
void Serving::begin_serving() noexcept {
  header_of(end_.memory()).stage = static_cast<std::uint32_t>(Stage::ready);
  end_.ring();
}

struct Serving::Loading {
  Slot& slot;
  std::shared_ptr<void> items;
  std::vector<Result<void>> loaded;  // of each record
};

/// Waits for a batch, and loads its items. Returns nothing if the worker is to end, or has no memory.
std::unique_ptr<Serving::Loading> Serving::load_batch(process::Helpers& helpers) noexcept {
  try {
    Slot* const slot = next_batch();
    if (!slot) return nullptr;
    const auto count = static_cast<std::size_t>(slot->count);
    auto batch = std::make_unique<Loading>(
        Loading{*slot, function_.make_items_(count), std::vector<Result<void>>(count)});
    const std::string name = text("The function that loads items of '", function_.name(), "'");
    const std::byte* const records = input_of(*slot);
    helpers.begin(count, [&](std::size_t number) {
      batch->loaded[number] =
          called(name, [&] { return function_.load_(state_.get(), records, batch->items.get(), number); });
    });
    helpers.finish();
    return batch;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

/// Loads each batch while the one before it runs. One of the threads waits for the batch.
void Serving::run_loaded_batches() {
  const std::uint32_t threads = options_.io_workers;
  auto helpers = process::Helpers::start("wye-load", threads > 1 ? threads - 1 : 0);
  if (!helpers) return refuse(end_, helpers.error());
  std::unique_ptr<Loading> following;
  auto ahead = process::Helpers::start("wye-load", threads > 0 ? 1 : 0);
  if (!ahead) return refuse(end_, ahead.error());
  begin_serving();
  const auto load_following = [&](std::size_t) { following = load_batch(*helpers); };
  ahead->begin(1, load_following);
  for (;;) {
    ahead->finish();
    const auto batch = std::move(following);
    if (!batch) return;
    ahead->begin(1, load_following);
    run_loaded(*batch);
  }
}

void Serving::run_loaded(Loading& batch) noexcept {
  const auto failed = std::ranges::find_if(batch.loaded, [](const Result<void>& one) { return !one; });
  answer(batch.slot, [&]() -> Result<void> {
    if (failed != batch.loaded.end()) return failed->error();
    return function_.run_items_(state_.get(), batch.items.get(), output_of(batch.slot), batch.loaded.size());
  });
}

Result<void> Serving::prepare() {
  if (!function_.make_state_) return {};
  auto runtime = options_.open_runtime();
  if (!runtime) return std::move(runtime).error();
  runtime_.emplace(*std::move(runtime));
  worker_.emplace(RecordWorker(&*runtime_, options_.device, options_.number, StopToken(&end_.ending())));
  auto state = called(text("Record function '", function_.name(), "'"),
                      [&] { return function_.make_state_(&*worker_); });
  if (!state) return std::move(state).error();
  state_ = *std::move(state);
  return {};
}

/// Waits for a batch, and takes it. Of two, the first is the earlier. Returns nullptr if the worker is to end.
Slot* Serving::next_batch() noexcept {
  auto& slots = header_of(end_.memory()).slots;
  for (;;) {
    const std::uint32_t seen = end_.calls();
    if (end_.is_ending()) return nullptr;
    const std::size_t first = slots[1].order < slots[0].order ? 1 : 0;
    for (Slot* const slot : {&slots[first], &slots[1 - first]})
      if (slot->move(SlotState::given, SlotState::running)) return slot;
    end_.wait(seen);
  }
}

std::byte* Serving::input_of(const Slot& slot) const noexcept {
  const auto number = static_cast<std::size_t>(&slot - header_of(end_.memory()).slots.data());
  return options_.layout.input_of(end_.memory(), number).data();
}

std::byte* Serving::output_of(const Slot& slot) const noexcept {
  const auto number = static_cast<std::size_t>(&slot - header_of(end_.memory()).slots.data());
  return options_.layout.output_of(end_.memory(), number).data();
}

/// Answers with the result of `call`.
template <class Call>
void Serving::answer(Slot& slot, Call call) noexcept {
  slot.has_error = 1;
  slot.error_bytes = 0;  // if there is no memory for an error, the set reads none
  try {
    const auto done = called(text("Record function '", function_.name(), "'"), call);
    slot.has_error = done ? 0 : 1;
    if (!done) slot.error_bytes = write(done.error(), slot.error);
  } catch (const std::bad_alloc&) {
  }
  slot.set(SlotState::answered);
  end_.ring();
}

void Serving::run_batch(Slot& slot) noexcept {
  answer(slot, [&] {
    return function_.run_(state_.get(), input_of(slot), output_of(slot),
                          static_cast<std::size_t>(slot.count));
  });
}

std::vector<std::byte> to_bytes(const Order& order) {
  const SlotLayout& layout = order.layout;
  std::string fields;
  const auto add = [&](const std::string& field) { fields.append(field.c_str(), field.size() + 1); };
  for (const std::uint64_t number : {layout.batch, layout.input, layout.output, std::uint64_t{order.number},
                                     std::uint64_t{order.io_workers}})
    add(std::to_string(number));
  add(order.function);
  add(order.device);
  for (const auto& [name, value] : order.options) {
    add(name);
    add(value);
  }
  const auto bytes = std::as_bytes(std::span(fields));
  return {bytes.begin(), bytes.end()};
}

std::optional<Order> order_from(std::span<const std::byte> bytes) {
  std::vector<std::string> fields;
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!rest.empty()) {
    const std::size_t end = rest.find('\0');
    if (end == rest.npos) return std::nullopt;
    fields.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  constexpr std::size_t numbers = 5, texts = 2;
  if (fields.size() < numbers + texts || (fields.size() - numbers - texts) % 2 != 0) return std::nullopt;
  std::array<std::uint64_t, numbers> read{};
  for (std::size_t n = 0; n < numbers; ++n) {
    const char* const end = fields[n].data() + fields[n].size();
    const auto [rest_of, error] = std::from_chars(fields[n].data(), end, read[n]);
    if (error != std::errc() || rest_of != end) return std::nullopt;
  }
  Order order{.layout = {.batch = read[0], .input = read[1], .output = read[2]},
              .function = std::move(fields[numbers]),
              .device = std::move(fields[numbers + 1]),
              .number = static_cast<std::uint32_t>(read[3]),
              .io_workers = static_cast<std::uint32_t>(read[4]),
              .options = {}};
  for (std::size_t f = numbers + texts; f < fields.size(); f += 2)
    order.options.emplace_back(std::move(fields[f]), std::move(fields[f + 1]));
  return order;
}

}  // namespace wye::records
