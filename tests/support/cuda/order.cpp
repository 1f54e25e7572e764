#include "support/cuda/order.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "support/cuda/memory.hpp"
#include "support/cuda/stream.hpp"

namespace standin {
namespace {

/// What the host knows to be complete, by any of its threads: how they tell each other is not
/// known. World's mutex.
Moment& seen() {
  static auto& moment = *new Moment;  // never destroyed, as the world
  return moment;
}

/// The streams that have not ended. World's mutex.
std::set<unsigned>& streams() {
  static auto& numbers = *new std::set<unsigned>;
  return numbers;
}

/// Adds `from` to `to`: afterwards all that is complete at either moment is complete at `to`.
void add(Moment& to, const Moment& from) {
  for (const auto& [stream, count] : from)
    if (streams().contains(stream)) to[stream] = std::max(to[stream], count);
}

bool is_behind(const Sequence& on, const Moment& moment) {
  return std::all_of(moment.begin(), moment.end(), [&](const auto& one) {
    const auto known = on.moment.find(one.first);
    return (known != on.moment.end() && known->second >= one.second) || !streams().contains(one.first);
  });
}

/// The stream-ordered allocation that contains `address`, or null. The world is locked.
Allocation* allocation_of(CUdeviceptr address) {
  Allocation* const found = find_allocation(address, 1);
  return found && !found->allocated.empty() ? found : nullptr;
}

}  // namespace

void enter(const Stream& stream) {
  const Unseen unseen;
  const std::lock_guard lock(world().mutex);
  streams().insert(stream.number);
}

void leave(const Stream& stream) {
  const Unseen unseen;
  const std::lock_guard lock(world().mutex);
  streams().erase(stream.number);
  seen().erase(stream.number);
}

void begin(Sequence& on) {
  const Unseen unseen;
  const std::lock_guard lock(world().mutex);
  std::erase_if(on.moment, [](const auto& one) { return !streams().contains(one.first); });
  add(on.moment, seen());
  ++on.moment[on.number];
}

Moment moment_of(const Sequence& on) {
  const Unseen unseen;
  const std::lock_guard lock(world().mutex);
  return on.moment;
}

void await(Stream& stream, const Moment& moment) {
  const Unseen unseen;
  const std::lock_guard lock(world().mutex);
  add(stream.moment, moment);
}

void see(const Moment& moment) {
  const Unseen unseen;
  const std::lock_guard lock(world().mutex);
  add(seen(), moment);
}

void see_all() {
  const Unseen unseen;
  const std::lock_guard lock(world().mutex);
  for (const auto& [object, its] : world().objects)
    if (its.kind == Stream::kind) add(seen(), static_cast<const Stream*>(object)->moment);
}

void note_allocation(Sequence& on, CUdeviceptr address) {
  const Unseen unseen;
  const std::lock_guard lock(world().mutex);
  const auto known = world().memory.find(address);
  if (known != world().memory.end()) known->second.allocated = {{on.number, on.moment[on.number]}};
}

void note_use(Sequence& on, CUdeviceptr address, const char* what) {
  std::string wrong;
  {
    const Unseen unseen;
    const std::lock_guard lock(world().mutex);
    Allocation* const memory = allocation_of(address);
    if (!memory) return;
    if (memory->is_freed)
      wrong = std::string(what) + " uses memory that has been freed";
    else if (!is_behind(on, memory->allocated))
      wrong = std::string(what) + " uses memory, and nothing orders it behind the allocation";
    else
      memory->uses[on.number] = on.moment[on.number];
  }
  if (!wrong.empty()) break_device(CUDA_ERROR_ILLEGAL_ADDRESS, wrong.c_str());
}

void note_free(Sequence& on, CUdeviceptr address) {
  bool is_ordered = true;
  {
    const Unseen unseen;
    const std::lock_guard lock(world().mutex);
    Allocation* const memory = allocation_of(address);
    if (!memory) return;
    is_ordered = !memory->is_freed && is_behind(on, memory->allocated) && is_behind(on, memory->uses);
    memory->is_freed = true;
  }
  if (!is_ordered)
    break_device(CUDA_ERROR_ILLEGAL_ADDRESS, "memory is freed, and nothing orders that behind its last use");
}

std::vector<CUdeviceptr> addresses_in(const std::vector<std::byte>& parameters) {
  std::vector<CUdeviceptr> words(parameters.size() / sizeof(CUdeviceptr));
  if (!words.empty()) std::memcpy(words.data(), parameters.data(), words.size() * sizeof(CUdeviceptr));
  return words;
}

void note_parameters(Sequence& on, const std::vector<std::byte>& parameters) {
  for (const CUdeviceptr address : addresses_in(parameters)) note_use(on, address, "a kernel");
}

}  // namespace standin
