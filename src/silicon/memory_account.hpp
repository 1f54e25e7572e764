#pragma once
/// A tree of accounts that count memory.
#include <wye/base/bytes.hpp>
#include <wye/base/result.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wye::inline v0::silicon {

class MachineShare;

/// The levels of the tree of accounts, from the root down.
enum class AccountLevel : std::uint8_t {
  silicon,  ///< one processor: the buffers of all of its devices in this process
  runtime,  ///< one pool on that processor
  context,  ///< one context of that pool
  tag,      ///< the allocations with one tag: of that pool on that processor, or of one context
};

/// Returns "silicon" and the like.
std::string_view name(AccountLevel level) noexcept;

/// Counts the bytes that one owner holds, its children included, against a limit. A refused
/// reservation leaves no charge. During a reservation other threads may see a part of it, and may
/// be refused because of it.
/// Threads: thread-safe; no lock but to list the accounts.
class MemoryAccount : public std::enable_shared_from_this<MemoryAccount> {
 public:
  static constexpr Bytes no_limit{~std::uint64_t{0}};

  /// One account, for display.
  struct Entry {
    std::string owner;
    AccountLevel level = AccountLevel::context;
    Bytes held, limit;
  };

  MemoryAccount(std::string owner, Bytes limit, AccountLevel level = AccountLevel::context,
                std::shared_ptr<MemoryAccount> parent = nullptr);
  MemoryAccount(const MemoryAccount&) = delete;  // its children have its address
  ~MemoryAccount();
  /// Charges `bytes` to this account and all of its ancestors, or to none.
  /// Errors: over_budget, or out_of_memory if the silicon refuses. The sentence names the refusing
  ///         account, its level, the bytes that it holds and its limit.
  /// Cost:   one atomic exchange per level.
  Result<void> reserve(Bytes bytes) { return reserve_up_to(nullptr, bytes); }
  /// Charges this account and its ancestors below `ancestor`, which is charged already.
  Result<void> reserve_below(const MemoryAccount& ancestor, Bytes bytes) {
    return reserve_up_to(&ancestor, bytes);
  }
  /// Takes `bytes` off this account and all of its ancestors.
  void release(Bytes bytes) noexcept { release_below(nullptr, bytes); }
  /// Returns the nearest account, from this one up, that would refuse `bytes` now, or null.
  const MemoryAccount* find_full(Bytes bytes) const noexcept;
  /// Returns the nearest account, from this one up, whose limit is less than `bytes`, or null.
  const MemoryAccount* find_smaller(Bytes bytes) const noexcept;
  /// Changes the limit. Bytes that are held already stay, even if they exceed it.
  void set_limit(Bytes limit) noexcept { limit_.store(limit.count, std::memory_order_relaxed); }

  /// From now on the budget of `machine` limits the sum of this account and those of other
  /// processes; null: no more. Only for an account without a parent. `machine` lives until the next
  /// call.
  void share(MachineShare* machine) noexcept;

  Bytes held() const noexcept { return Bytes{held_.load(std::memory_order_relaxed)}; }
  /// Returns the bytes of the same budget that other processes hold.
  Bytes held_elsewhere() const noexcept;
  /// The use of a limit.
  struct Use {
    Bytes held, limit;
    Bytes elsewhere = {};  ///< the part of `held` that other processes hold
  };
  /// Returns the use of the limit of this account alone or, if that is fuller, of the budget that
  /// it shares.
  Use use() const noexcept;
  /// Returns the limit of this account, which may be smaller because of the budget of another
  /// process.
  Bytes limit() const noexcept {
    const Bytes own{limit_.load(std::memory_order_relaxed)};
    return machine_.load(std::memory_order_relaxed) ? shared_limit(own) : own;
  }
  AccountLevel level() const noexcept { return level_; }
  const std::string& owner() const noexcept { return owner_; }
  /// Returns this account and all below it, each one before its children.
  std::vector<Entry> entries() const;
  const std::shared_ptr<MemoryAccount>& parent() const noexcept { return parent_; }

 private:
  bool has_room(std::uint64_t held, Bytes bytes) const noexcept {
    const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
    if (held > limit || bytes.count > limit - held) return false;
    return !machine_.load(std::memory_order_relaxed) || has_shared_room(held, bytes);
  }
  Bytes shared_limit(Bytes own) const noexcept;
  bool has_shared_room(std::uint64_t held, Bytes bytes) const noexcept;
  Result<void> reserve_up_to(const MemoryAccount* end, Bytes bytes);
  /// Charges this account alone. Returns false if it has no room.
  bool add(Bytes bytes) noexcept;
  void remove(Bytes bytes) noexcept;
  /// Takes `bytes` off this account and its ancestors below `end`.
  void release_below(const MemoryAccount* end, Bytes bytes) noexcept;
  void add_entries(std::vector<Entry>& entries) const;

  const std::string owner_;
  std::atomic<std::uint64_t> limit_;
  const AccountLevel level_;
  const std::shared_ptr<MemoryAccount> parent_;
  std::atomic<std::uint64_t> held_{0};
  std::atomic<MachineShare*> machine_{nullptr};  // null: no other process shares its limit
  mutable std::mutex mutex_;                     // of `children_`; a parent's is locked before a child's
  std::vector<const MemoryAccount*> children_;
};

/// Returns whether an error says that memory is not free.
inline bool is_shortage(const Error& error) noexcept {
  return error == Errc::out_of_memory || error == Errc::over_budget;
}

/// Bytes that are charged to an account until this ends.
/// Threads: one thread at a time.
class MemoryCharge {
 public:
  MemoryCharge() = default;  ///< charges nothing
  /// Charges `bytes` to both accounts, or to none. `tag` may be null, and is no ancestor of
  /// `account`.
  /// Errors: those of `MemoryAccount::reserve`.
  static Result<MemoryCharge> make(std::shared_ptr<MemoryAccount> account, Bytes bytes,
                                   std::shared_ptr<MemoryAccount> tag = nullptr);
  MemoryCharge(MemoryCharge&& other) noexcept = default;
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(tag_, other.tag_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryCharge() {
    if (account_) account_->release(bytes_);
    if (tag_) tag_->release(bytes_);
  }
  Bytes bytes() const noexcept { return bytes_; }
  /// Charges `bytes` to `account`, which outlives this charge or its next `narrow`. The results of
  /// `split` share its ownership. This charge must be empty.
  /// Errors: those of `MemoryAccount::reserve`; this charge stays empty.
  Result<void> fill(MemoryAccount& account, Bytes bytes) {
    if (auto reserved = account.reserve(bytes); !reserved) return reserved;
    account_ = std::shared_ptr<MemoryAccount>(std::shared_ptr<void>(), &account);
    bytes_ = bytes;
    return {};
  }
  /// Charges `tag` too, which is no ancestor of the account. Null: no effect.
  /// Errors: those of `MemoryAccount::reserve`; this charge stays as it was.
  Result<void> add_tag(const std::shared_ptr<MemoryAccount>& tag);
  /// Charges `account`, which is below the account of this charge, too.
  /// Errors: those of `MemoryAccount::reserve`; this charge stays as it was.
  Result<void> narrow(std::shared_ptr<MemoryAccount> account);
  /// Returns a charge of `bytes`, at most `bytes()`, which are taken off this one.
  MemoryCharge split(Bytes bytes) noexcept {
    bytes_ -= bytes;
    return MemoryCharge(account_ ? account_->shared_from_this() : nullptr, tag_, bytes);
  }

 private:
  MemoryCharge(std::shared_ptr<MemoryAccount> account, std::shared_ptr<MemoryAccount> tag,
               Bytes bytes) noexcept
      : account_(std::move(account)), tag_(std::move(tag)), bytes_(bytes) {}
  std::shared_ptr<MemoryAccount> account_, tag_;
  Bytes bytes_;
};

}  // namespace wye::silicon
