#include "spirv/writes.hpp"

#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace wye::inline v0::spirv {

namespace {

/// A set of roots, one bit each.
using Mask = std::uint64_t;
constexpr std::size_t most_roots = 64;
/// Limit of rounds. Addresses that still change afterwards are unknown. Real shaders need two or
/// three rounds.
constexpr int most_rounds = 16;

class Follower {
 public:
  Follower(const Module& module, const Roots& roots) : module_(module), roots_(roots) {
    for (const Variable& variable : module.variables) declare(variable.id, variable.type);
    for (const auto& [variable, root] : roots.buffers) from_[variable] = Mask{1} << root;
    for (std::size_t root : roots.members) all_members_ |= Mask{1} << root;
    for (const auto& [variable, root] : roots.buffers) all_buffers_ |= Mask{1} << root;
    if (roots.push != 0) from_[roots.push] = all_members_;
  }

  std::vector<Written> run(const std::vector<const Function*>& functions) {
    for (const Function* function : functions) parameters_of(*function);
    int round = 0;
    do {
      changed_ = false;
      for (const Function* function : functions)
        for (const Instruction& in : function->body) follow(in, function->id);
    } while (changed_ && ++round < most_rounds);

    for (const Function* function : functions)
      for (const Instruction& in : function->body) find_writes(in);
    std::vector<Written> written(roots_.count, changed_ ? Written::unknown : Written::no);
    for (std::size_t root = 0; root < roots_.count; ++root) {
      if (changed_) continue;
      if (sure_ >> root & 1)
        written[root] = Written::yes;
      else if (perhaps_ >> root & 1)
        written[root] = Written::unknown;
    }
    return written;
  }

 private:
  void parameters_of(const Function& function) {
    std::vector<Id>& parameters = parameters_[function.id];
    for (const Instruction& in : function.body)
      if (in.op == Op::OpFunctionParameter) parameters.push_back(in[1]);
  }

  void declare(Id id, Id type) { type_of_[id] = type; }
  /// Returns the storage class of `pointer`; nothing if the result of its instruction is not
  /// followed.
  std::optional<StorageClass> storage(Id pointer) const {
    const auto found = type_of_.find(pointer);
    if (found == type_of_.end()) return std::nullopt;
    return module_.type(found->second).storage;
  }
  bool is_local(Id pointer) const {
    const auto s = storage(pointer);
    return s == StorageClass::Function || s == StorageClass::Private || s == StorageClass::Workgroup;
  }
  /// Returns the roots of the address in `id`. For a pointer to a local variable, returns the roots
  /// of its contents.
  Mask from(Id id) const {
    const auto found = from_.find(id);
    return found == from_.end() ? 0 : found->second;
  }
  void add(Id id, Mask mask) {
    if (mask == 0) return;
    Mask& old = from_[id];
    if ((old | mask) != old) old |= mask, changed_ = true;
  }
  /// Returns the local variable that a pointer points into.
  Id local(Id pointer) const {
    const auto found = local_.find(pointer);
    return found == local_.end() ? pointer : found->second;
  }

  void follow(const Instruction& in, Id function) {
    const Id type = in[0], result = in[1];
    switch (in.op) {
      case Op::OpFunctionParameter:
      case Op::OpVariable: declare(result, type); break;
      case Op::OpAccessChain:
      case Op::OpInBoundsAccessChain:
      case Op::OpPtrAccessChain:
      case Op::OpInBoundsPtrAccessChain:
        declare(result, type);
        if (in[2] == roots_.push && roots_.push != 0)
          add(result, member(in));
        else if (is_local(in[2]))
          local_[result] = local(in[2]);
        else
          add(result, from(in[2]));
        break;
      case Op::OpLoad:
        declare(result, type);
        // The contents of a buffer are data: an address in them belongs to no parameter.
        if (is_local(in[2]) || storage(in[2]) == StorageClass::PushConstant) add(result, from(local(in[2])));
        break;
      case Op::OpStore:
        if (is_local(in[0])) add(local(in[0]), from(in[1]));
        break;
      case Op::OpCopyMemory:
        if (is_local(in[0]) && (is_local(in[1]) || storage(in[1]) == StorageClass::PushConstant))
          add(local(in[0]), from(local(in[1])));
        break;
      case Op::OpCopyObject:
      case Op::OpBitcast:
      case Op::OpUConvert:
      case Op::OpConvertPtrToU:
      case Op::OpConvertUToPtr:
      case Op::OpCopyLogical:
      case Op::OpCompositeExtract: copy(in, 2, 3); break;
      case Op::OpIAdd:
      case Op::OpISub:
      case Op::OpCompositeInsert: copy(in, 2, 4); break;
      case Op::OpSelect:
      case Op::OpCompositeConstruct:
      case Op::OpPhi: copy(in, 2, in.size()); break;
      case Op::OpReturnValue: add(function, from(in[0])); break;
      case Op::OpFunctionCall: call(in); break;
      default: break;
    }
  }

  void copy(const Instruction& in, std::size_t first, std::size_t last) {
    declare(in[1], in[0]);
    for (std::size_t i = first; i < last; ++i) add(in[1], from(in[i]));
  }

  /// Passes the roots of arguments to parameters. A parameter that points to a local variable also
  /// passes its roots back.
  void call(const Instruction& in) {
    declare(in[1], in[0]);
    add(in[1], from(in[2]));
    const auto found = parameters_.find(in[2]);
    if (found == parameters_.end()) return;
    for (std::size_t i = 0; i < found->second.size() && i + 3 < in.size(); ++i) {
      const Id parameter = found->second[i], argument = in[i + 3];
      add(parameter, from(local(argument)));
      if (is_local(argument)) add(local(argument), from(parameter));
    }
  }

  /// Returns the members of the push-constant block that an access chain into it can name.
  Mask member(const Instruction& chain) const {
    const auto index = module_.numbers.find(chain[3]);
    if (index == module_.numbers.end() || index->second >= roots_.members.size()) return all_members_;
    return Mask{1} << roots_.members[static_cast<std::size_t>(index->second)];
  }

  void find_writes(const Instruction& in) {
    switch (in.op) {
      case Op::OpStore:
      case Op::OpCopyMemory:
      case Op::OpCopyMemorySized:
      case Op::OpAtomicStore:
      case Op::OpAtomicFlagClear: write(in[0]); break;
      case Op::OpAtomicFlagTestAndSet:
      case Op::OpAtomicFMinEXT:
      case Op::OpAtomicFMaxEXT:
      case Op::OpAtomicFAddEXT: write(in[2]); break;
      default:
        if (in.op >= Op::OpAtomicExchange && in.op <= Op::OpAtomicXor) write(in[2]);
        break;
    }
  }

  void write(Id pointer) {
    if (is_local(pointer)) return;
    const Mask mask = from(pointer);
    if (mask == 0)
      perhaps_ |= all_members_ | all_buffers_;
    else if ((mask & (mask - 1)) == 0)
      sure_ |= mask;
    else
      perhaps_ |= mask;
  }

  const Module& module_;
  const Roots& roots_;
  std::unordered_map<Id, Id> type_of_;
  std::unordered_map<Id, Id> local_;
  std::unordered_map<Id, Mask> from_;
  std::unordered_map<Id, std::vector<Id>> parameters_;
  Mask all_members_ = 0, all_buffers_ = 0, sure_ = 0, perhaps_ = 0;
  bool changed_ = false;
};

}  // namespace

std::vector<const Function*> reachable(const Module& module, Id entry) {
  std::unordered_map<Id, const Function*> by_id;
  for (const Function& function : module.functions) by_id.emplace(function.id, &function);
  std::vector<const Function*> found;
  std::unordered_set<Id> seen{entry};
  if (const auto first = by_id.find(entry); first != by_id.end()) found.push_back(first->second);
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const Instruction& in : found[i]->body)
      if (in.op == Op::OpFunctionCall && seen.insert(in[2]).second)
        if (const auto called = by_id.find(in[2]); called != by_id.end()) found.push_back(called->second);
  return found;
}

std::vector<Written> find_writes(const Module& module, Id entry, const Roots& roots) {
  if (roots.count > most_roots) return std::vector<Written>(roots.count, Written::unknown);
  return Follower(module, roots).run(reachable(module, entry));
}

}  // namespace wye::spirv
