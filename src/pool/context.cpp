#include "pool/context.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/internals.hpp"
#include "base/text.hpp"

namespace wye::inline v0::pool {
namespace {

/// The last call of a lane that a thread made.
struct LastCall {
  Id of{};  ///< the id of a `Switches`, which may have ended
  const Context* context = nullptr;
  Instant end{};                  ///< set if its end was timed
  std::uint32_t timed_calls = 0;  ///< calls to time from now on, because the thread has switched
};
/// A thread that switches probably does so again. Others are spared reading the clock.
constexpr std::uint32_t most_timed_calls = 128;  // two for each submission
constinit thread_local LastCall last_call;

}  // namespace

Switches::Switches(std::shared_ptr<base::Journal> journal, const Fleet& fleet) noexcept
    : journal_(std::move(journal)), fleet_(fleet) {}

void Switches::note_submission(const Context& to) noexcept {
  if (last_call.context != &to || last_call.of != id) {
    const bool is_switch = last_call.context && last_call.of == id;
    if (is_switch) {
      count_.fetch_add(1, std::memory_order_relaxed);
      if (last_call.end != Instant()) report(*last_call.context, to, last_call.end);
    }
    last_call = {.of = id, .context = &to, .end = {}, .timed_calls = is_switch ? most_timed_calls : 0};
  }
  note_end();
}

void Switches::note_wait(const Context& of) noexcept {
  if (last_call.context == &of) note_end();
}

void Switches::note_end() const noexcept {
  const bool is_timed = last_call.timed_calls > 0 || journal_->wants<base::ContextSwitched>();
  if (last_call.timed_calls > 0) --last_call.timed_calls;
  last_call.end = is_timed ? Clock::steady().now() : Instant();
}

Histogram Switches::times() const noexcept {
  const base::Lock lock = base::lock_soon(mutex_);
  return times_;
}

void Switches::report(const Context& from, const Context& to, Instant since) noexcept {
  const Duration duration = Clock::steady().now() - since;
  {
    const base::Lock lock = base::lock_soon(mutex_);
    times_.add(duration);
  }
  if (!journal_->wants<base::ContextSwitched>()) return;
  const AdapterInfo &left = fleet_.info(from.device), &entered = fleet_.info(to.device);
  journal_->emit(base::ContextSwitched{.from = from.id,
                                       .to = to.id,
                                       .device = entered.id,
                                       .backend = entered.backend,
                                       .changes_device = left.id != entered.id,
                                       .changes_backend = left.backend != entered.backend,
                                       .thread = base::this_thread(),
                                       .duration = duration});
}

Result<void> Context::make_lane(const Fleet& fleet) {
  Device now = fleet.device(device);
  auto created = device::Lane::create(*base::state_of(now));
  if (!created) {
    refused = true;
    return std::move(created).error().with_context(base::text("while creating context '{}'", id));
  }
  lane = *std::move(created);
  on = std::move(now);
  if (!is_for_copies) lane->set_observer(this);
  if (switches.journal().wants<base::ContextCreated>())
    switches.journal().emit(base::ContextCreated{.id = context_id,
                                                 .context = id,
                                                 .device = fleet.info(device).id,
                                                 .limit = account ? account->limit() : Bytes{}});
  return {};
}

void Context::end_lane(Lanes& ended) noexcept {
  refused = false;
  on = {};
  if (!lane) return;
  ended.push_back(std::move(lane));
  has_lane = false;
}

void DeviceContexts::make(std::size_t device, const Fleet& fleet, Switches& switches,
                          const PoolOptions& options,
                          const std::shared_ptr<silicon::MemoryAccount>& account) {
  const std::string& on = fleet.info(device).id;
  for (std::uint32_t lane = 0; lane < options.lanes_per_device; ++lane) {
    auto context = std::make_unique<Context>(switches, device, base::text("{}#{}", on, lane));
    context->slot.context = context->id;
    context->slot.clock = &fleet.clock();
    context->account = std::make_shared<silicon::MemoryAccount>(context->id, options.lane_memory,
                                                                silicon::AccountLevel::context, account);
    all.push_back(std::move(context));
  }
  copying = std::make_unique<Context>(switches, device, base::text("{}#copies", on));
  copying->is_for_copies = true;
}

void DeviceContexts::open_ahead(const Fleet& fleet, std::uint32_t count, const base::Logger& log) {
  for (std::uint32_t c = 0; c < count; ++c) {
    Context& context = *all[c];
    const auto created = context.make_lane(fleet);
    context.has_lane = created.has_value();
    if (created) continue;
    context.refused = false;  // it is asked again when a lease needs it
    if (log.wants(LogLevel::warning, "pool"))
      log.write(LogLevel::warning, "pool", created.error().describe());
    break;
  }
}

std::size_t DeviceContexts::leased() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const auto& context) { return context->leased; }));
}

bool DeviceContexts::has_lane() const noexcept {
  return std::any_of(all.begin(), all.end(), [](const auto& context) { return context->has_lane; });
}

Context* DeviceContexts::best_idle(bool needs_lane) const noexcept {
  Context* idle = nullptr;
  for (const auto& context : all) {
    if (context->leased || (needs_lane && !context->has_lane)) continue;
    if (!idle ||
        std::pair(!context->has_lane, context->last_used) < std::pair(!idle->has_lane, idle->last_used))
      idle = context.get();
  }
  return idle;
}

void DeviceContexts::trim(Instant now, Duration idle_for, std::uint32_t kept, Lanes& ended) {
  auto lanes = std::count_if(all.begin(), all.end(), [](const auto& one) { return one->has_lane; });
  for (const auto& context : all) {
    if (context->leased || !context->has_lane || lanes <= kept) continue;
    if (context->idle_since == Instant::max()) context->idle_since = now;
    if (now - context->idle_since < idle_for) continue;
    ended.push_back(std::move(context->lane));
    context->has_lane = false;
    --lanes;
  }
}

void DeviceContexts::end_idle(Lanes& ended) noexcept {
  for (const auto& context : all)
    if (!context->leased) context->end_lane(ended);
  if (!copying->leased) copying->end_lane(ended);
  warm = nullptr;
}

void UnfinishedLanes::add(std::unique_ptr<device::Lane>& lane, const Context& context, std::string& work) {
  Entry& entry = entries_.emplace_back();
  entry.lane = std::move(lane);
  entry.context = &context;
  entry.work.swap(work);
  count(entry, 1);
}

Lanes UnfinishedLanes::take_finished() {
  Lanes finished;
  if (entries_.empty()) return finished;
  const auto first =
      std::partition(entries_.begin(), entries_.end(), [](const Entry& one) { return !one.lane->idle(); });
  finished.reserve(static_cast<std::size_t>(entries_.end() - first));
  for (auto one = first; one != entries_.end(); ++one) {
    count(*one, -1);
    finished.push_back(std::move(one->lane));
  }
  entries_.erase(first, entries_.end());
  return finished;
}

std::vector<UnfinishedLanes::Entry> UnfinishedLanes::take_all() noexcept {
  for (const Entry& one : entries_) count(one, -1);
  return std::exchange(entries_, {});
}

void abandon(std::unique_ptr<device::Lane> lane) noexcept {
  lane->timeline()->abandon();
  base::detail::keep(lane.release());
}

}  // namespace wye::pool
