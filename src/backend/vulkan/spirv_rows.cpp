#include "backend/vulkan/spirv_rows.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {
namespace {

using spirv::Instruction;
using Id = std::uint32_t;

/// Larger ids than this no module may have (SPIR-V 1.6, section 2.17, "Universal Limits").
constexpr std::uint64_t most_ids = 4194303;

/// Instructions of a function that take no pointer to a built-in, and have numbers that may equal its id.
bool has_literals(std::uint16_t op) {
  constexpr std::uint16_t list[] = {spirv::op_line,
                                    spirv::op_ext_inst,
                                    spirv::op_function,
                                    spirv::op_variable,
                                    spirv::op_vector_shuffle,
                                    spirv::op_composite_extract,
                                    spirv::op_composite_insert,
                                    spirv::op_loop_merge,
                                    spirv::op_selection_merge,
                                    spirv::op_branch_conditional,
                                    spirv::op_switch};
  return std::find(std::begin(list), std::end(list), op) != std::end(list) ||
         (op >= spirv::op_group_non_uniform_first && op <= spirv::op_group_non_uniform_last);
}

class Splitter {
 public:
  Splitter(const spirv::Module& module, std::uint32_t width, Extent3 workgroup)
      : module_(module), width_(width), workgroup_(workgroup), bound_(module.words()[3]) {
    const auto header = module.words().first(spirv::header_words);
    out_.assign(header.begin(), header.end());
  }

  /// Returns why it cannot be done; empty if it is done.
  std::string_view split() {
    module_.each([this](const Instruction& i) {
      if (why_.empty()) step(i);
    });
    if (why_.empty() && bound_ > most_ids) why_ = "it has too many ids";
    out_[3] = static_cast<std::uint32_t>(bound_);
    return why_;
  }
  std::vector<std::uint32_t> take() { return std::move(out_); }

 private:
  struct Vector {
    Id component = 0;
    std::uint32_t count = 0;
  };
  /// A variable that is a built-in, and the constants that its loads take.
  struct Variable {
    std::uint32_t built_in = 0;
    Id type = 0, component = 0;
    Id height = 0;  ///< what y counts in a row
    Id step = 0;    ///< what x counts from a row to the next
  };
  struct Pointer {
    Id variable = 0;
    std::optional<Id> index;  ///< of the one component that it points to
  };

  Id fresh() { return static_cast<Id>(bound_++); }

  void emit(std::uint16_t op, std::initializer_list<std::uint32_t> operands) {
    out_.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | op);
    out_.insert(out_.end(), operands);
  }
  /// Emits an instruction with a new result of type `type`.
  Id emit(std::uint16_t op, Id type, std::initializer_list<std::uint32_t> operands) {
    const Id result = fresh();
    out_.push_back(static_cast<std::uint32_t>(operands.size() + 3) << 16 | op);
    out_.insert(out_.end(), {type, result});
    out_.insert(out_.end(), operands);
    return result;
  }
  void copy(const Instruction& i) {
    const auto words = module_.words().subspan(i.at, i.operands.size() + 1);
    out_.insert(out_.end(), words.begin(), words.end());
  }

  static bool depends_on_rows(std::uint32_t built_in) {
    return built_in == spirv::built_in_num_workgroups || built_in == spirv::built_in_workgroup_id ||
           built_in == spirv::built_in_global_invocation_id;
  }

  void step(const Instruction& i) {
    if (i.op == spirv::op_function && !std::exchange(in_functions_, true)) declare_constants();
    if (in_functions_) return use(i);
    switch (i.op) {
      case spirv::op_decorate:
        if (i[1] == spirv::built_in && depends_on_rows(i[2])) decorated_[i[0]] = i[2];
        break;
      case spirv::op_member_decorate:
        if (i[2] == spirv::built_in && depends_on_rows(i[3])) why_ = "a built-in is a member of a structure";
        break;
      case spirv::op_decoration_group:
        if (decorated_.count(i[0]) != 0) why_ = "a built-in is decorated by a group";
        break;
      case spirv::op_type_int:
        if (i[1] == 32) words_.push_back(i[0]);
        break;
      case spirv::op_type_vector: vectors_[i[0]] = {i[1], i[2]}; break;
      case spirv::op_type_pointer: pointees_[i[0]] = i[2]; break;
      case spirv::op_variable: declare_variable(i); break;
      default: break;
    }
    copy(i);
  }

  void declare_variable(const Instruction& i) {
    const auto decorated = decorated_.find(i[1]);
    if (decorated == decorated_.end()) return;
    const Id type = pointees_[i[0]];
    const Vector vector = vectors_[type];
    if (i[2] != spirv::input || vector.count != 3 ||
        std::find(words_.begin(), words_.end(), vector.component) == words_.end()) {
      why_ = "a built-in is no input of three 32-bit integers";
      return;
    }
    variables_[i[1]] = {.built_in = decorated->second, .type = type, .component = vector.component};
    pointers_[i[1]] = {.variable = i[1], .index = std::nullopt};
  }

  void declare_constants() {
    for (auto& [id, variable] : variables_) {
      const bool of_items = variable.built_in == spirv::built_in_global_invocation_id;
      const auto constant = [&, type = variable.component](std::uint64_t value) {
        return emit(spirv::op_constant, type, {static_cast<std::uint32_t>(value)});
      };
      variable.height = constant(of_items ? workgroup_.y : 1);
      variable.step = constant(width_ * (of_items ? workgroup_.x : 1));
    }
  }

  /// An instruction of a function. What a valid module uses was defined before.
  void use(const Instruction& i) {
    const auto known = pointers_.find(i[2]);
    const bool takes_known = known != pointers_.end();
    switch (i.op) {
      case spirv::op_load:
        if (takes_known) return load(i, known->second);
        break;
      case spirv::op_copy_object:
        if (takes_known) pointers_[i[1]] = Pointer(known->second);
        break;
      case spirv::op_access_chain:
      case spirv::op_in_bounds_access_chain:
        if (!takes_known) break;
        if (i.operands.size() > 4 || (i.operands.size() == 4 && known->second.index)) {
          why_ = "it goes deeper into a built-in than its components";
        } else {
          Pointer pointer = known->second;
          if (i.operands.size() == 4) pointer.index = i[3];
          pointers_[i[1]] = pointer;
        }
        break;
      default: {
        if (has_literals(i.op)) break;
        const auto operands = i.op == spirv::op_store
                                  ? i.operands.first(std::min<std::size_t>(2, i.operands.size()))
                                  : i.operands;
        for (const Id operand : operands)
          if (pointers_.count(operand) != 0) why_ = "it uses a built-in without loading it";
      }
    }
    copy(i);
  }

  /// x' = x + row * step, y' = y - row * height, z' = z, where row = y / height.
  void load(const Instruction& i, const Pointer& pointer) {
    const Variable& variable = variables_[pointer.variable];
    if (variable.built_in == spirv::built_in_num_workgroups) {
      why_ = "it reads NumWorkgroups";
      return;
    }
    const Id type = variable.component;
    const Id all = emit(spirv::op_load, variable.type, {pointer.variable});
    const Id x = emit(spirv::op_composite_extract, type, {all, 0});
    const Id y = emit(spirv::op_composite_extract, type, {all, 1});
    const Id z = emit(spirv::op_composite_extract, type, {all, 2});
    // Takes integers of either signedness; y is far below 2^31.
    const Id row = emit(spirv::op_s_div, type, {y, variable.height});
    const Id before = emit(spirv::op_i_mul, type, {row, variable.step});
    const Id new_x = emit(spirv::op_i_add, type, {x, before});
    const Id above = emit(spirv::op_i_mul, type, {row, variable.height});
    const Id new_y = emit(spirv::op_i_sub, type, {y, above});
    if (!pointer.index) return emit(spirv::op_composite_construct, {variable.type, i[1], new_x, new_y, z});
    const Id whole = emit(spirv::op_composite_construct, variable.type, {new_x, new_y, z});
    emit(spirv::op_vector_extract_dynamic, {type, i[1], whole, *pointer.index});
  }

  const spirv::Module& module_;
  const std::uint64_t width_;
  const Extent3 workgroup_;
  std::uint64_t bound_;
  std::vector<std::uint32_t> out_;
  std::string_view why_;
  bool in_functions_ = false;
  std::unordered_map<Id, std::uint32_t> decorated_;
  std::vector<Id> words_;  // 32-bit integer types
  std::unordered_map<Id, Vector> vectors_;
  std::unordered_map<Id, Id> pointees_;
  std::unordered_map<Id, Variable> variables_;
  std::unordered_map<Id, Pointer> pointers_;
};

}  // namespace

Result<std::vector<std::uint32_t>> split_into_rows(const spirv::Module& module, std::string_view kernel,
                                                   std::uint32_t width, Extent3 workgroup) {
  Splitter splitter(module, width, workgroup);
  if (const std::string_view why = splitter.split(); !why.empty())
    return Error(Errc::unsupported,
                 base::text("Kernel '{}' cannot be dispatched as rows of workgroups: {}.", kernel, why));
  return splitter.take();
}

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
