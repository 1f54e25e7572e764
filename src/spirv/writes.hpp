#pragma once
/// Finds the buffers and parameters that a shader writes through.
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "spirv/module.hpp"
#include "spirv/written.hpp"

namespace wye::inline v0::spirv {

/// The origins of addresses: bound buffers, and members of the push-constant block.
struct Roots {
  std::unordered_map<Id, std::size_t> buffers;  ///< by variable
  Id push = 0;                                  ///< the variable of the push-constant block
  std::vector<std::size_t> members;             ///< root of each member of the block, in order of declaration
  std::size_t count = 0;                        ///< of all roots
};

/// Returns for each root whether the code reachable from `entry` writes through it. Follows
/// addresses through loads, copies, local variables and calls. If an address may come from several
/// roots, each of them is `unknown`, never wrongly `no`.
std::vector<Written> find_writes(const Module& module, Id entry, const Roots& roots);

/// Returns the functions that `entry` calls, directly or not, and `entry` itself.
std::vector<const Function*> reachable(const Module& module, Id entry);

}  // namespace wye::spirv
