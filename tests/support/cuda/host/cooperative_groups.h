#pragma once
// The cooperative groups of CUDA that consist of blocks, on the host. host_cuda.hpp must be included before.

namespace cooperative_groups {

class thread_block {
 public:
  void sync(int line = __builtin_LINE()) const { twin::sync_threads(line); }
  unsigned thread_rank() const { return twin::index_in_block(); }
  unsigned size() const {
    const dim3& dim = twin::self.block_dim;
    return dim.x * dim.y * dim.z;
  }
};
inline thread_block this_thread_block() { return {}; }

class cluster_group {
 public:
  void sync(int line = __builtin_LINE()) const { twin::sync_cluster(line); }
  unsigned block_rank() const {
    const uint3& at = twin::self.block;
    const dim3& dim = twin::self.cluster_dim;
    return (at.z % dim.z * dim.y + at.y % dim.y) * dim.x + at.x % dim.x;
  }
  unsigned num_blocks() const {
    const dim3& dim = twin::self.cluster_dim;
    return dim.x * dim.y * dim.z;
  }
};
inline cluster_group this_cluster() { return {}; }

class grid_group {
 public:
  void sync(int line = __builtin_LINE()) const { twin::sync_grid(line); }
  unsigned long long block_rank() const {
    const uint3& at = twin::self.block;
    const dim3& dim = twin::self.grid_dim;
    return (static_cast<unsigned long long>(at.z) * dim.y + at.y) * dim.x + at.x;
  }
  unsigned long long num_blocks() const {
    const dim3& dim = twin::self.grid_dim;
    return static_cast<unsigned long long>(dim.x) * dim.y * dim.z;
  }
  unsigned long long thread_rank() const {
    return block_rank() * this_thread_block().size() + twin::index_in_block();
  }
};
inline grid_group this_grid() { return {}; }

}  // namespace cooperative_groups
