#include "spirv/rewrite.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/text.hpp"

namespace wye::inline v0::spirv {
namespace {

/// The largest id of a module (SPIR-V 1.6, section 2.17, "Universal Limits").
constexpr std::uint64_t most_ids = 4194303;

/// Returns whether an instruction has literal operands that may equal the id of a built-in. These
/// instructions take no pointer to a built-in.
bool has_literals(Op op) {
  constexpr Op list[] = {
      Op::OpLine,           Op::OpExtInst,           Op::OpFunction,        Op::OpVariable,
      Op::OpVectorShuffle,  Op::OpCompositeExtract,  Op::OpCompositeInsert, Op::OpLoopMerge,
      Op::OpSelectionMerge, Op::OpBranchConditional, Op::OpSwitch};
  return std::find(std::begin(list), std::end(list), op) != std::end(list) ||
         (op >= Op::OpGroupNonUniformElect && op <= Op::OpGroupNonUniformQuadSwap);
}

class Splitter {
 public:
  Splitter(const Module& module, std::uint32_t width, Extent3 workgroup)
      : module_(module), width_(width), workgroup_(workgroup), bound_(module.words[3]) {
    out_.assign(module.words.begin(), module.words.begin() + header_words);
  }

  /// Returns the reason why the module cannot be split; empty if it is split.
  std::string_view split() {
    find_variables();
    bool in_functions = false;
    for (const Instruction& i : module_.instructions) {
      if (!why_.empty()) return why_;
      if (i.op == Op::OpFunction && !std::exchange(in_functions, true)) declare_constants();
      if (in_functions)
        rewrite(i);
      else
        copy(i);
    }
    if (why_.empty() && bound_ > most_ids) why_ = "it has too many ids";
    out_[3] = static_cast<std::uint32_t>(bound_);
    return why_;
  }
  Words take() { return std::move(out_); }

 private:
  /// A variable of a built-in, and the constants that its rewritten loads use.
  struct BuiltInVariable {
    spv::BuiltIn built_in{};
    Id id = 0, type = 0, component = 0;
    Id height = 0;  ///< the extent of y in a row
    Id step = 0;    ///< the increment of x from a row to the next
  };
  struct Pointer {
    std::size_t variable = 0;  ///< in `variables_`
    std::optional<Id> index;   ///< of the component that it points to
  };

  /// Emits an instruction with a new result of type `type`.
  Id emit(Op op, Id type, std::initializer_list<std::uint32_t> operands) {
    const Id result = static_cast<Id>(bound_++);
    append(out_, op, {type, result});
    out_[out_.size() - 3] += static_cast<std::uint32_t>(operands.size()) << 16;
    out_.insert(out_.end(), operands);
    return result;
  }
  void copy(const Instruction& i) { out_.insert(out_.end(), i.words().begin(), i.words().end()); }

  /// Returns the built-in of `decorations` if its value depends on the rows, otherwise nothing.
  static std::optional<spv::BuiltIn> rows_built_in(const Decorations& decorations) {
    if (!decorations.built_in) return std::nullopt;
    const auto built_in = static_cast<spv::BuiltIn>(*decorations.built_in);
    if (built_in == spv::BuiltIn::NumWorkgroups || built_in == spv::BuiltIn::WorkgroupId ||
        built_in == spv::BuiltIn::GlobalInvocationId)
      return built_in;
    return std::nullopt;
  }

  void find_variables() {
    for (const auto& [member, decorations] : module_.member_decorations)
      if (rows_built_in(decorations)) why_ = "a built-in is a member of a structure";
    for (const Id group : module_.decoration_groups)
      if (rows_built_in(module_.decoration(group))) why_ = "a built-in is decorated by a group";
    for (const Variable& variable : module_.variables) {
      const auto built_in = rows_built_in(module_.decoration(variable.id));
      if (!built_in) continue;
      const Type& type = module_.pointee(variable);
      if (variable.storage != StorageClass::Input || type.kind != Type::Kind::vector || type.count != 3 ||
          (type.component != ElementType::int32 && type.component != ElementType::uint32))
        why_ = "a built-in is not an input of three 32-bit integers";
      pointers_[variable.id] = {.variable = variables_.size(), .index = std::nullopt};
      variables_.push_back({.built_in = *built_in,
                            .id = variable.id,
                            .type = module_.type(variable.type).element,
                            .component = type.element});
    }
  }

  void declare_constants() {
    for (BuiltInVariable& variable : variables_) {
      const bool of_items = variable.built_in == spv::BuiltIn::GlobalInvocationId;
      const auto constant = [&](std::uint64_t value) {
        return emit(Op::OpConstant, variable.component, {static_cast<std::uint32_t>(value)});
      };
      variable.height = constant(of_items ? workgroup_.y : 1);
      variable.step = constant(width_ * (of_items ? workgroup_.x : 1));
    }
  }

  /// Rewrites an instruction of a function. A valid module defines pointers before it uses them.
  void rewrite(const Instruction& i) {
    const auto known = pointers_.find(i[2]);
    const bool takes_known = known != pointers_.end();
    switch (i.op) {
      case Op::OpLoad:
        if (takes_known) return load(i, known->second);
        break;
      case Op::OpCopyObject:
        if (takes_known) pointers_[i[1]] = Pointer(known->second);
        break;
      case Op::OpAccessChain:
      case Op::OpInBoundsAccessChain:
        if (!takes_known) break;
        if (i.operands.size() > 4 || (i.operands.size() == 4 && known->second.index)) {
          why_ = "it indexes a component of a built-in";
        } else {
          Pointer pointer = known->second;
          if (i.operands.size() == 4) pointer.index = i[3];
          pointers_[i[1]] = pointer;
        }
        break;
      default: {
        if (has_literals(i.op)) break;
        const auto operands =
            i.op == Op::OpStore ? i.operands.first(std::min<std::size_t>(2, i.operands.size())) : i.operands;
        for (const Id operand : operands)
          if (pointers_.count(operand) != 0) why_ = "it uses a built-in without loading it";
      }
    }
    copy(i);
  }

  /// Loads x' = x + row * step, y' = y - row * height, z' = z with row = y / height.
  void load(const Instruction& i, const Pointer& pointer) {
    const BuiltInVariable& variable = variables_[pointer.variable];
    if (variable.built_in == spv::BuiltIn::NumWorkgroups) {
      why_ = "it reads NumWorkgroups";
      return;
    }
    const Id type = variable.component;
    const Id all = emit(Op::OpLoad, variable.type, {variable.id});
    const Id x = emit(Op::OpCompositeExtract, type, {all, 0});
    const Id y = emit(Op::OpCompositeExtract, type, {all, 1});
    const Id z = emit(Op::OpCompositeExtract, type, {all, 2});
    // OpSDiv accepts signed and unsigned integers; y is far below 2^31.
    const Id row = emit(Op::OpSDiv, type, {y, variable.height});
    const Id before = emit(Op::OpIMul, type, {row, variable.step});
    const Id new_x = emit(Op::OpIAdd, type, {x, before});
    const Id above = emit(Op::OpIMul, type, {row, variable.height});
    const Id new_y = emit(Op::OpISub, type, {y, above});
    if (!pointer.index) return append(out_, Op::OpCompositeConstruct, {variable.type, i[1], new_x, new_y, z});
    const Id whole = emit(Op::OpCompositeConstruct, variable.type, {new_x, new_y, z});
    append(out_, Op::OpVectorExtractDynamic, {type, i[1], whole, *pointer.index});
  }

  const Module& module_;
  const std::uint64_t width_;
  const Extent3 workgroup_;
  std::uint64_t bound_;
  Words out_;
  std::string_view why_;
  std::vector<BuiltInVariable> variables_;
  std::unordered_map<Id, Pointer> pointers_;
};

}  // namespace

Result<Words> split_into_rows(const Module& module, std::string_view kernel, std::uint32_t width,
                              Extent3 workgroup) {
  Splitter splitter(module, width, workgroup);
  if (const std::string_view why = splitter.split(); !why.empty())
    return Error(Errc::unsupported,
                 base::text("Kernel '{}' cannot be dispatched as rows of workgroups: {}.", kernel, why));
  return splitter.take();
}

}  // namespace wye::spirv
