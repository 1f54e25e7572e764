#pragma once
#include <optional>
#include <utility>

#include "base/descriptor_watch.hpp"
#include "base/shared_memory.hpp"
#include "process/block.hpp"
#include "process/workers.hpp"

namespace wye::inline v0::process {

/// The memory of a worker that is a process; a thread has that of its parent's `Worker`.
struct JoinedMemory {
  base::SharedBlock block;
  base::SharedBlock bell;
  base::DescriptorWatch parent;
};

struct WorkerEnd::State {
  BlockHeader* header = nullptr;
  std::atomic<std::uint32_t>* bell = nullptr;
  std::span<const std::byte> message;
  std::span<std::byte> memory;
  std::optional<JoinedMemory> joined = std::nullopt;
};

}  // namespace wye::process
