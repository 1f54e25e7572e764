#include "serving.hpp"

#include <algorithm>
#include <array>
#include <charconv>
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
    if (auto prepared = prepare(); !prepared) {
      refuse(end_, prepared.error());
    } else {
      SlotHeader& header = header_of(end_.memory());
      header.stage = static_cast<std::uint32_t>(Stage::ready);
      end_.ring();
      while (!end_.is_ending()) {
        const std::uint32_t seen = end_.calls();
        if (Slot* const slot = next_batch())
          run_batch(*slot, static_cast<std::size_t>(slot - header.slots.data()));
        else if (!end_.is_ending())
          end_.wait(seen);
      }
    }
  } catch (const std::bad_alloc&) {  // without memory for an error: the set sees the end of the worker
  }
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

/// Takes the batch that was given first.
Slot* Serving::next_batch() noexcept {
  auto& slots = header_of(end_.memory()).slots;
  Slot* const order[] = {&slots[slots[1].order < slots[0].order ? 1 : 0],
                         &slots[slots[1].order < slots[0].order ? 0 : 1]};
  for (Slot* const slot : order)
    if (slot->move(SlotState::given, SlotState::running)) return slot;
  return nullptr;
}

void Serving::run_batch(Slot& slot, std::size_t number) {
  const SlotLayout& layout = options_.layout;
  const auto count = static_cast<std::size_t>(slot.count);
  const std::byte* const in = layout.input_of(end_.memory(), number).data();
  std::byte* const out = layout.output_of(end_.memory(), number).data();
  const auto done = called(text("Record function '", function_.name(), "'"),
                           [&] { return function_.run_(state_.get(), in, out, count); });
  slot.has_error = done ? 0 : 1;
  if (!done) slot.error_bytes = write(done.error(), slot.error);
  slot.set(SlotState::answered);
  end_.ring();
}

std::vector<std::byte> to_bytes(const Order& order) {
  const SlotLayout& layout = order.layout;
  std::string fields;
  const auto add = [&](const std::string& field) { fields.append(field.c_str(), field.size() + 1); };
  for (const std::uint64_t number : {layout.batch, layout.input, layout.output, std::uint64_t{order.number}})
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
  constexpr std::size_t numbers = 4, texts = 2;
  if (fields.size() < numbers + texts || fields.size() % 2 != 0) return std::nullopt;
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
              .options = {}};
  for (std::size_t f = numbers + texts; f < fields.size(); f += 2)
    order.options.emplace_back(std::move(fields[f]), std::move(fields[f + 1]));
  return order;
}

}  // namespace wye::records
