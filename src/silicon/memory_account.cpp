#include "silicon/memory_account.hpp"

#include <algorithm>

#include "base/sizes.hpp"
#include "base/text.hpp"
#include "silicon/machine_share.hpp"

namespace wye::inline v0::silicon {

std::string_view name(AccountLevel level) noexcept {
  switch (level) {
    case AccountLevel::silicon: return "silicon";
    case AccountLevel::runtime: return "runtime";
    case AccountLevel::context: return "context";
    case AccountLevel::tag: return "tag";
  }
  return "unknown";
}

MemoryAccount::MemoryAccount(std::string owner, Bytes limit, AccountLevel level,
                             std::shared_ptr<MemoryAccount> parent)
    : owner_(std::move(owner)), limit_(limit.count), level_(level), parent_(std::move(parent)) {
  if (!parent_) return;
  const std::lock_guard lock(parent_->mutex_);
  parent_->children_.push_back(this);
}

MemoryAccount::~MemoryAccount() {
  if (!parent_) return;
  const std::lock_guard lock(parent_->mutex_);
  std::erase(parent_->children_, this);
}

std::vector<MemoryAccount::Entry> MemoryAccount::entries() const {
  std::vector<Entry> entries;
  add_entries(entries);
  return entries;
}

void MemoryAccount::add_entries(std::vector<Entry>& entries) const {
  entries.push_back({.owner = owner_, .level = level_, .held = held(), .limit = limit()});
  const std::lock_guard lock(mutex_);
  for (const MemoryAccount* const child : children_) child->add_entries(entries);
}

Result<void> MemoryAccount::reserve_up_to(const MemoryAccount* end, Bytes bytes) {
  for (MemoryAccount* account = this; account != end; account = account->parent_.get()) {
    if (account->add(bytes)) continue;
    release_below(account, bytes);  // first: to describe the error allocates
    const auto [held, limit, elsewhere] = account->use();
    const base::Sizes size(bytes, limit - std::min(held, limit));
    const std::string others =
        elsewhere == Bytes{} ? std::string() : base::text(", {} by other processes", size(elsewhere));
    return Error(
        account->level_ == AccountLevel::silicon ? Errc::out_of_memory : Errc::over_budget,
        base::text("Allocation ({}) exceeds the rest of the budget of {} '{}' ({} held of {}{}).",
                   size(bytes), name(account->level_), account->owner_, size(held), size(limit), others));
  }
  return {};
}

bool MemoryAccount::add(Bytes bytes) noexcept {
  std::uint64_t held = held_.load(std::memory_order_relaxed);
  do {
    if (!has_room(held, bytes)) return false;
  } while (!held_.compare_exchange_weak(held, held + bytes.count));
  MachineShare* const machine = machine_.load();
  if (!machine) return true;
  // All processes publish first and then add up: of those that would exceed the budget together, at
  // most one succeeds.
  machine->publish(held_);
  if (machine->has_room(this->held().count, {})) return true;
  remove(bytes);
  return false;
}

void MemoryAccount::remove(Bytes bytes) noexcept {
  held_.fetch_sub(bytes.count);
  if (MachineShare* const machine = machine_.load()) machine->publish(held_);
}

void MemoryAccount::release_below(const MemoryAccount* end, Bytes bytes) noexcept {
  for (MemoryAccount* account = this; account != end; account = account->parent_.get())
    account->remove(bytes);
}

void MemoryAccount::share(MachineShare* machine) noexcept {
  machine_ = machine;
  if (machine) machine->publish(held_);
}

Bytes MemoryAccount::held_elsewhere() const noexcept {
  const MachineShare* const machine = machine_.load();
  return machine ? machine->held_elsewhere() : Bytes{};
}

MemoryAccount::Use MemoryAccount::use() const noexcept {
  const Use own{held(), Bytes{limit_.load(std::memory_order_relaxed)}};
  const MachineShare* const machine = machine_.load();
  if (!machine) return own;
  const Bytes elsewhere = machine->held_elsewhere();
  const Use shared{own.held + elsewhere, machine->budget(), elsewhere};
  const auto part = [](const Use& use) {
    return static_cast<double>(use.held.count) / static_cast<double>(use.limit.count);
  };
  return part(shared) > part(own) ? shared : own;
}

Bytes MemoryAccount::shared_limit(Bytes own) const noexcept {
  const MachineShare* const machine = machine_.load();
  return machine ? std::min(own, machine->budget()) : own;
}

bool MemoryAccount::has_shared_room(std::uint64_t held, Bytes bytes) const noexcept {
  MachineShare* const machine = machine_.load();
  return !machine || machine->has_room(held, bytes) ||
         (machine->collect_dead() && machine->has_room(held, bytes));
}

const MemoryAccount* MemoryAccount::find_full(Bytes bytes) const noexcept {
  const MemoryAccount* account = this;
  while (account && account->has_room(account->held().count, bytes)) account = account->parent_.get();
  return account;
}

const MemoryAccount* MemoryAccount::find_smaller(Bytes bytes) const noexcept {
  const MemoryAccount* account = this;
  while (account && bytes <= account->limit()) account = account->parent_.get();
  return account;
}

Result<void> MemoryCharge::narrow(std::shared_ptr<MemoryAccount> account) {
  if (auto charged = account->reserve_below(*account_, bytes_); !charged) return charged;
  account_ = std::move(account);
  return {};
}

Result<MemoryCharge> MemoryCharge::make(std::shared_ptr<MemoryAccount> account, Bytes bytes,
                                        std::shared_ptr<MemoryAccount> tag) {
  if (account)
    if (auto reserved = account->reserve(bytes); !reserved) return std::move(reserved).error();
  MemoryCharge charge(std::move(account), nullptr, bytes);
  if (auto reserved = charge.add_tag(tag); !reserved) return std::move(reserved).error();
  return charge;
}

Result<void> MemoryCharge::add_tag(const std::shared_ptr<MemoryAccount>& tag) {
  if (!tag) return {};
  if (auto reserved = tag->reserve(bytes_); !reserved) return reserved;
  tag_ = tag;
  return {};
}

}  // namespace wye::silicon
