#pragma once
/// What a shader writes.
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernel/reflect/spirv.hpp"
#include "kernel/reflect/spirv_module.hpp"

namespace wye {
inline namespace v0 {
namespace kernel {

/// Something that memory is reached from: a bound buffer, or a member of the push-constant block.
struct Roots {
  std::unordered_map<Id, std::size_t> buffers;  ///< by variable
  Id push = 0;                                  ///< the variable of the push-constant block
  std::vector<std::size_t> members;             ///< root of each member of the block, in order of declaration
  std::size_t count = 0;                        ///< of all roots
};

/// Which roots the code reachable from `entry` writes through. Addresses are followed through loads, copies,
/// local variables and calls; where one may come from several roots the answer is `unknown`, never a wrong
/// `no`.
std::vector<Written> find_writes(const Module& module, Id entry, const Roots& roots);

/// The functions that can run when `entry` is called, itself included.
std::vector<const Function*> reachable(const Module& module, Id entry);

}  // namespace kernel
}  // namespace v0
}  // namespace wye
